"""Tests as a user writes them, annotated with the public names and checked by ``python -m mypy tests/typing``.

pytest collects no file of this name: nothing here runs.  ``assert_type`` says what a user may rely on, so that a name
that turns into ``Any`` is noticed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from typing_extensions import assert_type

from pytest_gpuperf import (
    BadArgument,
    BadCubin,
    BadOption,
    Change,
    CheckedOnly,
    CompileError,
    CountersMissing,
    CuteKernel,
    CutileKernel,
    DeviceFacts,
    DuplicateWorkload,
    Gpu,
    GpuPerf,
    Judgement,
    Kernel,
    KernelCompiler,
    Key,
    Launch,
    LaunchedKernel,
    LaunchError,
    LoadError,
    Measurement,
    MissingSource,
    NotDeclared,
    NumbaKernel,
    Occupancy,
    PerformanceRegression,
    StaticOnly,
    StaticProfile,
    StaticRecord,
    TimeFigures,
    ToolchainMissing,
    TritonKernel,
    UnknownArchitecture,
    UnknownKernel,
    UnsupportedKernel,
    Verdict,
    __version__,
)

N = 1 << 24


@pytest.fixture(scope="session")
def shared(cuda_kernel: KernelCompiler) -> Kernel:
    return cuda_kernel("kernels/scale.cu", "scale")


def sampled(shared: Kernel, gpu: Gpu) -> None:
    image = gpu.random((64, 64), seed=1)
    shared.launch(grid=1, block=256, args=(bytes(128),))()
    error = gpu.ulp_error(gpu.empty(N), image)
    assert_type(error, float)
    assert error <= 2


def scaled(cuda_kernel: KernelCompiler, gpu: Gpu) -> Launch:
    kernel = cuda_kernel("kernels/scale.cu", "scale", options=["-DTILE=32"], headers=[Path("include")], arch="sm_90")
    assert_type(kernel, Kernel)
    launch = kernel.launch(grid=(N // 256,), block=256, args=(gpu.random(N, seed=1), gpu.empty(N)))
    assert_type(launch, Launch)
    assert_type(launch.grid, tuple[int, int, int])
    assert_type(launch.occupancy, dict[str, Occupancy])
    return launch


def test_scale(cuda_kernel: KernelCompiler, gpu: Gpu, gpuperf: GpuPerf) -> None:
    launch = scaled(cuda_kernel, gpu)
    x, y = launch.arguments
    result = gpuperf(launch, bytes=2 * x.nbytes, check=lambda: gpu.assert_equal(y, x), cache="warm", tolerance="tight")
    assert_type(result, Measurement)
    assert_type(result.time_ns, float)
    assert_type(result.interval_ns, tuple[float, float])
    assert_type(result.spill_bytes, int | None)
    assert_type(result.counters, Mapping[str, float])
    assert result.registers <= 32
    assert result.occupancy > 0.5
    assert result.bandwidth > 0.7 * gpu.copy_bandwidth


def test_reset_and_metrics(cuda_kernel: KernelCompiler, gpu: Gpu, gpuperf: GpuPerf) -> None:
    y = gpu.zeros(N)
    launch = cuda_kernel("kernels/scale.cu", "accumulate").launch(grid=8, block=(32, 8), args=(y,), shared_bytes=1024)
    gpuperf(launch, name="accumulate", reset=lambda: y.fill(0), flops=N, metrics={"lts__t_sectors.sum": 0.02})
    gpuperf(lambda: y.fill(1), name="fill", metrics=["lts__t_sectors.sum"])
    beside = gpuperf(launch, name="beside", measure=("memory", "host", "elapsed"), accuracy=lambda: gpu.ulp_error(y, y))
    assert_type((beside.memory_bytes, beside.host_ns, beside.error), tuple[int, float, float])
    assert_type((beside.roof, beside.limited_by), tuple[float, str])
    assert gpuperf(lambda: y.fill(2), name="host", measure={"host": 0.1, "memory": None}).host_ns < 1e6


def test_fresh_inputs(gpu: Gpu, gpuperf: GpuPerf, launch: Launch) -> None:
    def inputs(seed: int) -> Any:
        return gpu.random(N, seed=seed)

    y = gpu.empty(N)
    gpuperf(launch, inputs=inputs, outputs=(y,), check=lambda result: gpu.assert_equal(result, y))
    gpuperf(lambda x: x + 1, inputs=inputs, check=lambda result, inputs: gpu.assert_equal(result, inputs[0] + 1))


def test_other_compilers(cuda_kernel: KernelCompiler, gpuperf: GpuPerf, compiled: Any) -> None:
    triton = cuda_kernel.from_triton(compiled)
    assert_type(triton, TritonKernel)
    gpuperf(triton.launch(grid=8, args=()))
    raw = cuda_kernel.from_cupy(compiled)
    assert_type(raw, Kernel)
    assert_type(cuda_kernel.from_cupy(compiled, "scale", arch="sm_90"), Kernel)
    numba = cuda_kernel.from_numba(compiled, compiled, arch=["sm_90"])
    assert_type(numba, NumbaKernel)
    gpuperf(numba.launch(grid=8, block=256, args=(), shared_bytes=16))
    tuned = cuda_kernel.from_triton(compiled, config={"BLOCK": 1024, "num_warps": 4})
    assert_type(tuned, TritonKernel)
    cute = cuda_kernel.from_cute([compiled], symbol="kernel_cutlass_scale_0", name="scale")
    assert_type(cute, CuteKernel)
    assert_type(cute.launch(lambda array: compiled(array, 0), args=(compiled,)), Launch)
    cutile = cuda_kernel.from_cutile(compiled, compiled, arch=["sm_90", "sm_100"])
    assert_type(cutile, CutileKernel)
    gpuperf(cutile.launch(grid=(8, 8), args=(compiled, 1024)))
    ready_made = cuda_kernel.from_cubin(Path("scale.cubin"), "scale", source="scale.cu")
    several = cuda_kernel.from_cubin({"sm_80": Path("scale80.cubin"), "sm_90": "scale90.cubin"}, "scale", arch="sm_90")
    assert "sm_90" in several.profiles
    assert_type(ready_made, Kernel)


def static_figures(result: Measurement, kernel: Kernel) -> StaticProfile:
    assert_type(result.kernels, tuple[LaunchedKernel, ...])
    assert all(one.stack_bytes == 0 and one.time_ns for one in result.kernels)
    record = result.static["sm_90"]
    assert_type(record, StaticRecord)
    assert_type(kernel.profiles, dict[str, StaticProfile])
    assert_type(record.profile.opcodes, dict[str, int])
    return record.profile


def test_what_the_gate_says(result: Measurement) -> None:
    judgement = result.judgement
    assert_type(judgement, Judgement | None)
    if judgement is None:
        pytest.skip("nothing was judged")
    assert_type(judgement.key, Key)
    assert_type(judgement.kind, Literal["static", "counters", "time", "memory", "accuracy", "host"])
    assert judgement.verdict is not Verdict.SLOWER
    assert_type(judgement.verdict.is_regression, bool)
    assert_type(judgement.changes, tuple[Change, ...])
    assert_type(judgement.time, TimeFigures | None)
    if judgement.time is not None:
        assert_type(judgement.time.ratio, float | None)


def is_hopper(facts: DeviceFacts) -> bool:
    assert_type(facts.compute_capability, tuple[int, int])
    return facts.arch == "sm_90"


def test_what_may_be_caught(cuda_kernel: KernelCompiler, gpuperf: GpuPerf, result: Measurement) -> None:
    with pytest.raises(CompileError) as caught:
        cuda_kernel("kernels/broken.cu", "scale")
    assert_type(caught.value.line, int | None)
    for problem in (BadArgument, BadOption, MissingSource, ToolchainMissing, UnknownArchitecture, UnknownKernel):
        with pytest.raises(problem):
            cuda_kernel("kernels/scale.cu", "scale")
    for refused in (BadCubin, LoadError, UnsupportedKernel):
        with pytest.raises(refused):
            cuda_kernel.from_cubin(b"", "scale")
    with pytest.raises(LaunchError):
        cuda_kernel("kernels/scale.cu", "scale").launch(grid=0, block=256)
    with pytest.raises(DuplicateWorkload):
        gpuperf(print, name="twice")
    try:
        counted = result.counters["lts__t_sectors.sum"]
    except CountersMissing:
        counted = 0.0
    assert_type(counted, float)
    try:
        assert_type(result.flops, float)
    except (NotDeclared, CheckedOnly, StaticOnly) as why:
        assert_type(str(why), str)


@pytest.mark.xfail(raises=PerformanceRegression, reason="until #7", strict=True)
def test_version() -> None:
    assert_type(__version__, str)
