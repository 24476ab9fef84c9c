"""The fixture of pytest-benchmark, gated: ``pytest_plugins = ["pytest_gpuperf.benchmark"]`` in a ``conftest.py``.

``benchmark(f, *args, **kwargs)`` and ``benchmark.pedantic`` measure device time as ``gpuperf`` does, against baselines;
under plain ``pytest`` each runs once.  The gate chooses how often a function runs, and ``stats`` is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.api.gpu_perf import GpuPerf


class Benchmark:
    """Called as pytest-benchmark's; ``group`` and ``extra_info`` are kept for the test alone."""

    def __init__(self, gpuperf: GpuPerf) -> None:
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self._gpuperf = gpuperf

    def __call__(self, function_to_benchmark: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Measure the call, and return its result."""
        return self.pedantic(function_to_benchmark, args, kwargs)

    def pedantic(
        self, target: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None, **_rounds: int,
    ) -> Any:  # fmt: skip
        """The same; ``setup`` is called before each run, untimed, and may return the run's arguments.

        Numbers of rounds, iterations and warm-ups have no effect.
        """
        given: list[Any] = [args, kwargs or {}]
        results: list[Any] = [None]

        def prepare() -> None:
            given[:] = (setup is not None and setup()) or given

        def run() -> None:
            results[0] = target(*given[0], **given[1])

        name = getattr(target, "__name__", "benchmark")
        self._gpuperf(run, name=name, reset=None if setup is None else prepare)
        return results[0]


@pytest.fixture
def benchmark(gpuperf: GpuPerf) -> Benchmark:
    """Measure a function on the GPU."""
    return Benchmark(gpuperf)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "benchmark(group=None, **more): of pytest-benchmark; it has no effect")
