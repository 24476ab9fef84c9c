"""The fixture of pytest-benchmark, gated: ``pytest_plugins = ["pytest_gpuperf.benchmark"]`` in a ``conftest.py``.

``benchmark(f, *args, **kwargs)`` and ``benchmark.pedantic`` measure device time as ``gpuperf`` does, against baselines;
under plain ``pytest`` each runs once.  The gate chooses how often a function runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.api.gpu_perf import GpuPerf
    from pytest_gpuperf.workload.measurement import Measurement


class Stats:
    """``stats["mean"]`` or ``stats.stats.mean``, seconds.  Under plain ``pytest`` the first read ends the test, passed.

    There is one figure, the device time of a run; so median, least and most are the same.
    """

    def __init__(self, measurement: Measurement) -> None:
        self.stats, self._measurement = self, measurement

    @property
    def mean(self) -> float:
        return self._measurement.time_ns / 1e9

    median = min = max = mean

    def __getitem__(self, name: str) -> float:
        return float(getattr(self, name))


class Benchmark:
    """Called as pytest-benchmark's; ``name``, ``group`` and ``extra_info`` are kept for the test alone."""

    def __init__(self, gpuperf: GpuPerf, item: pytest.Item) -> None:
        marker = item.get_closest_marker("benchmark")
        self.name, self.fullname = item.name, item.nodeid
        self.group: str | None = marker.kwargs.get("group") if marker is not None else None
        self.extra_info: dict[str, Any] = {}
        self.enabled, self.disabled = True, False
        self.stats: Stats | None = None
        self._gpuperf = gpuperf

    def __call__(self, function_to_benchmark: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Measure the call, and return its result."""
        return self.pedantic(function_to_benchmark, args, kwargs)

    def pedantic(
        self, target: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None, teardown: Callable[..., Any] | None = None,
        rounds: int = 1, warmup_rounds: int = 0, iterations: int = 1,  # noqa: ARG002 of the protocol
    ) -> Any:  # fmt: skip
        """The same; ``setup`` is called before each run, untimed, and may return the run's arguments.

        So is ``teardown``, with them, after each.  Numbers of rounds, iterations and warm-ups have no effect.
        """
        call, result, waits = functools.partial(target, *args, **kwargs or {}), None, False

        def clean_up() -> None:
            nonlocal waits
            if waits and teardown is not None:
                teardown(*call.args, **call.keywords)
            waits = False

        def prepare() -> None:
            nonlocal call
            clean_up()
            if given := setup is not None and setup():
                call = functools.partial(target, *given[0], **given[1])

        def run() -> None:
            nonlocal result, waits
            result, waits = call(), True

        try:
            name = getattr(target, "__name__", "benchmark")
            self.stats = Stats(self._gpuperf(run, name=name, reset=prepare if setup or teardown else None))
        finally:
            clean_up()
        if not self._gpuperf.gpu.available:  # where this ends the test
            _ = self.stats.mean
        return result


@pytest.fixture
def benchmark(gpuperf: GpuPerf, request: pytest.FixtureRequest) -> Benchmark:
    """Measure a function on the GPU."""
    return Benchmark(gpuperf, request.node)


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("benchmark"):  # it refuses a fixture of another plugin; its flags stay known
        config.pluginmanager.unregister(name="benchmark")
        words = (*config.getini("addopts"), *map(str, config.invocation_params.args))
        if idle := [word for word in words if word.startswith("--benchmark-")]:
            why = f"{' '.join(idle)}: no effect, for pytest_gpuperf.benchmark is in use; pytest --gpuperf gates"
            config.issue_config_time_warning(pytest.PytestConfigWarning(why), stacklevel=2)
    config.addinivalue_line("markers", "benchmark(group=None, **more): of pytest-benchmark; it names a group")
