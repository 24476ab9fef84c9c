"""Figures beside the time on a real GPU: memory to the byte, host times and errors."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from git_samples import commit

from pytest_gpuperf.arguments import BadArgument

pytestmark = pytest.mark.gpu

SUITE = """
import cupy
import pytest

def test_memory(gpu, gpuperf):
    x = cupy.ones(1 << 20, dtype="float32")
    def work():
        scratch = cupy.zeros(SCRATCH, dtype="float32")
        return (x + 1).sum() + scratch[0]
    result = gpuperf(work, name="work", measure=("memory",), tolerance=0.5)
    assert result.memory_bytes >= 4 * (SCRATCH + (1 << 20))

def test_host(gpu, gpuperf):
    x = cupy.zeros(64, dtype="float32")
    def work():
        for _ in range(CALLS):
            cupy.add(x, 1, out=x)
    assert 1000 < gpuperf(work, name="work", measure=("host",), tolerance=0.5).host_ns < 1e6

def test_launch(cuda_kernel, gpu, gpuperf):
    x, y = gpu.random(1 << 20, seed=1), gpu.empty(1 << 20)
    launch = cuda_kernel("copy.cu", "copy").launch(grid=4096, block=256, args=(x, y))
    result = gpuperf(launch, measure=("memory", "host"),
                     accuracy=lambda: gpu.ulp_error(y, gpu.to_host(x).astype("float64")))
    assert result.memory_bytes == 2 * x.nbytes
    assert result.error == 0.0
"""
COPY = """
extern "C" __global__ void copy(const float* a, float* b) { int i = blockIdx.x * 256 + threadIdx.x; b[i] = a[i]; }
"""
RECORD = ("--update-baselines",)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def write(pytester: pytest.Pytester, *, scratch: int = 1 << 18, calls: int = 10) -> None:
    text = SUITE.replace("SCRATCH", str(scratch)).replace("CALLS", str(calls))
    (pytester.path / "test_beside.py").write_text(text, encoding="utf-8")
    (pytester.path / "copy.cu").write_text(COPY, encoding="utf-8")
    (pytester.path / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")


def verdicts(pytester: pytest.Pytester) -> dict[str, str]:
    run(pytester, "--gpuperf", "--gpuperf-open=fail", "--gpuperf-report=found.json")
    found = json.loads((pytester.path / "found.json").read_text())
    return {
        f"{one['test']}.{judged['kind']}": judged["verdict"]
        for one in found["tests"]
        for work in one.get("workloads", ())
        for judged in work.get("judgements", ())
        if judged["kind"] not in ("static", "time")
    }


def test_equal_work_passes_and_each_loss_is_found(cuda_device: Any, pytester: pytest.Pytester) -> None:
    cuda_device.release_unused()
    write(pytester)
    commit(pytester.path, "work")  # callables are paired with the commit of their record
    recorded = run(pytester, *RECORD)
    assert recorded.ret == 0, recorded.stdout.str()
    assert not re.search("refused", recorded.stdout.str())
    commit(pytester.path, "baselines")
    equal = verdicts(pytester)
    assert set(equal) == {"test_memory.memory", "test_host.host", *(
        f"test_launch.{kind}" for kind in ("memory", "host", "accuracy")
    )}  # fmt: skip
    assert not {"WORSE", "BETTER", "NEW"} & set(equal.values()), equal
    assert {verdict for name, verdict in equal.items() if not name.endswith(".host")} == {"SAME"}, equal
    write(pytester, scratch=(1 << 18) + 20_000, calls=20)
    lost = {"test_memory.memory", "test_host.host"}
    same = {"test_launch.memory", "test_launch.accuracy"}
    wanted = {**dict.fromkeys(lost, "WORSE"), **dict.fromkeys(same, "SAME")}
    worse = verdicts(pytester)
    assert {name: verdict for name, verdict in worse.items() if name in wanted} == wanted


def test_memory_of_a_run_is_what_cupy_gives_out_at_most(cuda_device: Any) -> None:
    cupy = pytest.importorskip("cupy")

    def work() -> Any:
        first = cupy.empty(1 << 20, dtype="uint8")
        del first
        second = cupy.empty(3 << 20, dtype="uint8")
        return cupy.empty(100, dtype="uint8"), second

    assert [cuda_device.bytes_of(work) for _ in range(3)] == [(3 << 20) + 512] * 3
    assert cuda_device.bytes_of(lambda: None) == 0


def test_memory_of_pytorch_counts_too(cuda_device: Any) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(1 << 20, device="cuda")
    assert cuda_device.bytes_of(lambda: x + 1) == 4 << 20


def test_memory_of_an_allocator_that_tells_nobody_is_refused(cuda_device: Any) -> None:
    cupy = pytest.importorskip("cupy")
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    try:
        with pytest.raises(BadArgument, match="set_allocator"):
            cuda_device.bytes_of(lambda: cupy.empty(1 << 20))
    finally:
        cupy.cuda.set_allocator(before)
