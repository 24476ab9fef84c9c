"""The fixtures: ``cuda_kernel``, ``gpu`` and ``gpuperf``.

Registered as a plugin of its own, so that ``plugin.py`` holds hooks only.  Nothing heavy is imported
until a test asks for a fixture.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_gpuperf.marker import settings_of
from pytest_gpuperf.stash import bench_of, book_of

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench
    from pytest_gpuperf.device.gpu import Gpu
    from pytest_gpuperf.device.launch import Kernel, Launch
    from pytest_gpuperf.measurement import Measurement
    from pytest_gpuperf.session import TestBook


class MissingSource(FileNotFoundError):
    """The kernel's source file is not where the test says."""


class BadArgument(TypeError):
    """A fixture was called with something that it does not take."""


class KernelCompiler:
    """``cuda_kernel(path_or_source, name, ...) -> Kernel``.

    ``path_or_source`` is a path relative to the test file, or CUDA C++ source (anything with a line
    break or a brace in it).  ``name`` is the ``__global__`` function; a template instantiation is named
    by ``name_expression`` such as ``"transpose<32, float>"``.  ``options`` are NVRTC's, as CuPy takes
    them; ``headers`` are folders or files, relative to the test file.  ``arch`` replaces the run's
    targets.  Raises ``BadArgument``, ``MissingSource`` and the errors of ``compile`` (``CompileError``,
    ``UnknownKernel``, ``ToolchainMissing``, ``BadOption``, ``UnknownArchitecture``).
    """

    def __init__(self, bench: Bench, book: TestBook, folder: Path, items: Sequence[pytest.Item] = ()) -> None:
        """``items`` are the tests of this run."""
        self._bench = bench
        self._book = book
        self._folder = folder
        self._items = items

    def __call__(
        self,
        path_or_source: str | Path,
        name: str,
        *,
        options: Sequence[str] = (),
        name_expression: str | None = None,
        headers: Sequence[str | Path] = (),
        arch: str | Sequence[str] | None = None,
    ) -> Kernel:
        from pytest_gpuperf import compile as compiler
        from pytest_gpuperf.device.launch import Kernel

        if isinstance(options, str):
            raise BadArgument(f"cuda_kernel: options={options!r} is one string; it takes a list: options=[{options!r}]")
        path, text = self._source(path_or_source)
        source = compiler.KernelSource(
            text=text, name=name, path=path, options=tuple(options), name_expression=name_expression,
            headers=tuple(self._folder / header for header in headers),
        )  # fmt: skip
        targets = self._targets(arch)
        native = self._native(targets)
        wanted = list(dict.fromkeys([*targets, *([native] if native else [])]))
        cache = self._bench.compile_cache
        binaries = compiler.compile_for(
            source, wanted, cache=cache, foreseen=functools.partial(self._foreseen, name_expression or name)
        )
        gated = {target: binaries[target].record() for target in targets}
        self._book.add_compiled(name_expression or name, gated)
        return Kernel(binaries, device=self._bench.device, native=native, targets=targets,
                      ptx=lambda which: compiler.ptx(source, which, cache))  # fmt: skip

    def _foreseen(self, kernel: str, source_hash: str) -> tuple[str | None, ...]:
        from pytest_gpuperf.foreseen import name_expressions

        nodes = (item.nodeid.partition("::") for item in self._items)
        tests = {test for module, _, test in nodes if module == self._book.module}
        return name_expressions(self._bench, self._book, tests, kernel, source_hash)

    def _targets(self, arch: str | Sequence[str] | None) -> tuple[str, ...]:
        if arch is None:
            return self._bench.targets
        return (arch,) if isinstance(arch, str) else tuple(arch)

    def _native(self, targets: tuple[str, ...]) -> str | None:
        """What this GPU runs: a target made for it (``sm_90a``) before its plain architecture."""
        native = self._bench.native_arch
        if native is None:
            return None
        return next((target for target in targets if target.rstrip("af") == native), native)

    def _source(self, path_or_source: str | Path) -> tuple[Path | None, str]:
        if isinstance(path_or_source, str) and ("\n" in path_or_source or "{" in path_or_source):
            return None, path_or_source
        path = self._folder / path_or_source
        try:
            return path, path.read_text(encoding="utf-8")
        except FileNotFoundError:
            there = sorted(file.name for file in path.parent.glob("*.cu*")) if path.parent.is_dir() else []
            close = difflib.get_close_matches(path.name, there, n=3) or there[:8]
            hint = f"; there are: {', '.join(close)}" if close else f"; the folder {path.parent} holds no .cu file"
            raise MissingSource(f"{path}: no such file{hint}. Paths are relative to the test file.") from None
        except (OSError, UnicodeDecodeError) as problem:
            raise MissingSource(f"{path}: cannot be read: {problem}") from None


class GpuPerf:
    """``gpuperf(workload, ...) -> Measurement``.

    Runs the workload once, checks it, and, under ``--gpuperf``, measures it and judges it against its
    baseline.  ``workload`` is a ``Launch`` or any callable that launches on the current stream.
    ``check`` is called after the first run; an exception (or ``False``) fails the test and nothing is
    timed.  ``reset`` restores in-place inputs before every run and is not timed.  ``bytes`` and ``flops``
    are what one run must move and compute.  ``cache="cold"`` flushes the L2 before each sample.
    Raises ``BadArgument``, and ``DuplicateWorkload`` for a name used twice.
    """

    def __init__(self, bench: Bench, book: TestBook, item: pytest.Item) -> None:
        self._bench = bench
        self._book = book
        self._settings = settings_of(item)

    def __call__(
        self,
        workload: Launch | Callable[[], Any],
        *,
        name: str | None = None,
        check: Callable[[], Any] | None = None,
        reset: Callable[[], Any] | None = None,
        bytes: int | None = None,
        flops: int | None = None,
        cache: str | None = None,
        tolerance: float | None = None,
        metrics: Sequence[str] | Mapping[str, Any] = (),
    ) -> Measurement:
        from pytest_gpuperf.counters.asking import BadMetric, own_metrics
        from pytest_gpuperf.measuring import Request, measure

        if not callable(workload):
            raise BadArgument(
                f"gpuperf measures a launch or a callable, not {type(workload).__name__}: "
                "pass kernel.launch(...) or a function that launches"
            )
        if cache not in (None, "cold", "warm"):
            raise BadArgument(f"gpuperf: cache={cache!r} is not valid: it takes 'cold' or 'warm'")
        if tolerance is not None and not 0 < tolerance <= 0.5:
            raise BadArgument(f"gpuperf: tolerance={tolerance!r} is not valid: it takes a fraction up to 0.5")
        try:
            own = {**self._bench.options.metrics, **own_metrics(self._settings.metrics or ()), **own_metrics(metrics)}
        except BadMetric as problem:
            raise BadArgument(f"gpuperf: {problem}") from None
        request = Request.of(
            workload, name=name, check=check, reset=reset, bytes=bytes, flops=flops,
            cache=cache or self._settings.cache or self._bench.options.cache,
            zone=self._bench.options.zone(tolerance or self._settings.tolerance, self._settings.profile),
            budget_s=self._settings.budget_s or self._bench.options.budget_s,
            metrics=own,
        )  # fmt: skip
        return measure(self._bench, self._book, request)


@pytest.fixture
def cuda_kernel(request: pytest.FixtureRequest) -> KernelCompiler:
    """Compile a CUDA kernel with NVRTC and take its static evidence for every target architecture."""
    bench, book = bench_of(request.config), book_of(request.node)
    return KernelCompiler(bench, book, request.path.parent, request.session.items)


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Gpu:
    """The GPU of this process: seeded arrays, facts, measured peaks and comparisons."""
    return bench_of(request.config).gpu


@pytest.fixture
def gpuperf(request: pytest.FixtureRequest) -> GpuPerf:
    """Check, measure and judge a workload."""
    return GpuPerf(bench_of(request.config), book_of(request.node), request.node)
