"""Counters by the real ncu: known figures of known kernels, the same in every process, gated and explained."""

from __future__ import annotations

from typing import Any

import pytest
from counters_in_report import counters_in

from pytest_gpuperf.counters.catalogue import METRICS, SETS
from pytest_gpuperf.counters.report import read_report
from pytest_gpuperf.counters.run_ncu import CountersUnavailable, find_ncu

pytestmark = pytest.mark.gpu

SUITE = '''
SOURCE = """
extern "C" __global__ void copy(const float* in, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

extern "C" __global__ void strided(const float* in, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(i * 32) % (gridDim.x * blockDim.x)];
}

extern "C" __global__ void conflicts(const float* in, float* out)
{
    __shared__ float tile[32 * PITCH];
    int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int r = row; r < 32; r += blockDim.x / 32) tile[r * PITCH + lane] = in[r * 32 + lane];
    __syncthreads();
    for (int r = row; r < 32; r += blockDim.x / 32) out[r * 32 + lane] = tile[lane * PITCH + r];
}
"""
BLOCKS, THREADS = 4096, 256


def test_access(cuda_kernel, gpu, gpuperf):
    a = gpu.random(BLOCKS * THREADS, seed=1)
    for name in ("copy", "strided"):
        kernel = cuda_kernel(SOURCE, name, options=["-DPITCH=32"])
        gpuperf(kernel.launch(grid=BLOCKS, block=THREADS, args=(a, gpu.empty_like(a))), name=name)


def test_shared(cuda_kernel, gpu, gpuperf):
    a = gpu.random(1024, seed=1)
    for pitch in (32, 33):
        kernel = cuda_kernel(SOURCE, "conflicts", options=[f"-DPITCH={pitch}"])
        gpuperf(kernel.launch(grid=1, block=256, args=(a, gpu.empty_like(a))), name=f"pitch {pitch}")
'''
WARPS = 4096 * 256 // 32


@pytest.fixture
def suite(cuda_device: Any, pytester: pytest.Pytester) -> pytest.Pytester:
    try:
        find_ncu()
    except CountersUnavailable as problem:
        pytest.skip(f"needs ncu: {problem.reason}")
    pytester.makepyfile(test_kernels=SUITE)
    return pytester


def collect(suite: pytest.Pytester, *flags: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    out = suite.path / "all.json"
    result = suite.runpytest_subprocess("-p", "no:cacheprovider", f"--gpuperf-report={out}", *flags)
    if "ERR_NVGPUCTRPERM" in result.stdout.str():
        pytest.skip("this user may not read counters")
    return result, counters_in(out)


def workloads(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: work for works in found.values() for name, work in works.items()}


def test_the_default_set_takes_one_pass_and_little_time(suite: pytest.Pytester) -> None:
    result, found = collect(suite, "--gpuperf-ncu")
    result.assert_outcomes(passed=2)
    for work in workloads(found).values():
        assert work["counters"]["profiler__replayer_passes"] == 1
        assert set(work["counters"]) == {metric.name for metric in SETS["default"]}


def test_known_kernels_have_known_counters(suite: pytest.Pytester) -> None:
    _, found = collect(suite, "--gpuperf-ncu=memory")
    counters = {name: work["counters"] for name, work in workloads(found).items()}

    def ratio(workload: str, above: str, below: str) -> float:
        found = {METRICS[name].what: count for name, count in counters[workload].items()}
        return float(found[above] / found[below])

    assert counters["copy"]["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == WARPS
    assert ratio("copy", "global load sectors", "global load requests") == 4
    assert ratio("copy", "bytes asked for by global loads", "global load sectors") == 32
    assert ratio("strided", "global load sectors", "global load requests") == 32
    assert ratio("pitch 32", "shared load wavefronts", "shared loads executed") == 32
    assert ratio("pitch 33", "shared load wavefronts", "shared loads executed") == 1


def test_exact_counters_are_the_same_in_every_process(suite: pytest.Pytester) -> None:
    first, *others = [workloads(collect(suite, "--gpuperf-ncu=memory")[1]) for _ in range(3)]
    for other in others:
        for name, work in first.items():
            exact = {metric for metric in work["counters"] if METRICS[metric].klass == "exact"}
            assert {metric: other[name]["counters"][metric] for metric in exact} == {
                metric: work["counters"][metric] for metric in exact
            }


def test_recorded_counters_are_green_and_a_conflict_is_red(suite: pytest.Pytester) -> None:
    record = ("--update-baselines", "--gpuperf-disturbed")
    collect(suite, *record, "--gpuperf-ncu=memory")
    result, _ = collect(suite, "--gpuperf-ncu=memory")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["counters: 4 UNCHANGED"])
    path = suite.path / "test_kernels.py"
    path.write_text(path.read_text(encoding="utf-8").replace('f"-DPITCH={pitch}"', '"-DPITCH=32"'), encoding="utf-8")
    result, _ = collect(suite, "--gpuperf-ncu=memory")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*shared load wavefronts 32 -> 1024 wavefronts*"])
    kept = read_report(suite.path / ".gpuperf" / "counters-1.ncu-rep")
    loads = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
    assert [one.metrics[loads] for one in kept if one.range.endswith(":baseline")] == [32]
