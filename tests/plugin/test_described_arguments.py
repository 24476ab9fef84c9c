"""Workloads whose arguments are textures and TMA descriptors: recorded, unchanged, and beside their baseline."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from suite_under_test import HERE, RECORD, Suite

CONFTEST = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import numpy as np
import pytest
from simulated_gpu import SimulatedArrays, SimulatedGpu

class Aligned(SimulatedArrays):  # as a GPU's allocator places arrays
    def random(self, shape, dtype="float32", *, seed, low=None, high=None):
        room = np.zeros(int(np.prod(shape)) + 128, dtype)
        start = -room.ctypes.data % 512 // room.itemsize
        return room[start : start + int(np.prod(shape))].reshape(shape)

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    device = SimulatedGpu()
    device.arrays = Aligned()
    return device
"""
KERNEL = """
struct alignas(64) Descriptor { unsigned long long opaque[16]; };
extern "C" __global__ void work(cudaTextureObject_t from, const __grid_constant__ Descriptor map, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = tex1Dfetch<float>(from, i) + map.opaque[i & 15];
}
"""
TEST = """
def test_work(cuda_kernel, gpu, gpuperf):
    a = gpu.random((16, 64), seed=1)
    texture, tiles = gpu.texture(gpu.random(1024, seed=2)), gpu.tensor_map(a, box=BOX)
    launch = cuda_kernel("work.cu", "work").launch(grid=8, block=128, args=(texture, tiles, gpu.empty(1024), 1024))
    gpuperf(launch)
"""


@pytest.fixture
def described(suite: Suite) -> Suite:
    for path in suite.path.glob("test_*.py"):
        path.unlink()
    suite.write("work.cu", KERNEL)
    suite.write("test_described.py", TEST.replace("BOX", "(16, 32)"))
    return suite


def test_without_a_gpu_they_are_placeholders_and_the_code_is_judged(described: Suite) -> None:
    assert described.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    result = described.run("--gpuperf", "--gpuperf-arch=sm_90")
    result.stdout.fnmatch_lines(["*work*UNCHANGED*", "*1 static only*"])


@pytest.fixture
def recorded(described: Suite) -> Suite:
    described.write("conftest.py", CONFTEST)
    assert described.run(*RECORD).ret == 0
    return described


def test_what_they_describe_is_on_record_and_unchanged_in_another_process(recorded: Suite) -> None:
    tree = read_evidence(recorded.path / "baselines/simulated-gpu/test_described.json")
    texture, tiles, *_ = tree["tests"]["test_work"]["work"]["identity"]["arguments"]
    assert texture.startswith("texture float32x1[1024] linear ")
    assert tiles.startswith("tensor_map float32[16,64] strides=256 box=16,32 ")
    result = recorded.run("--gpuperf", "-v", subprocess=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*work * / 0 / 100%*UNCHANGED*"])


def test_changed_code_is_paired_on_the_same_descriptors_in_two_processes(recorded: Suite) -> None:
    recorded.edit("work.cu", "map.opaque[i & 15]", "map.opaque[i & 15] * 3")
    result = recorded.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["work  SLOWER  on simulated-gpu*paired*", "*slower, in two processes*"])


def test_another_description_is_another_launch(recorded: Suite) -> None:
    recorded.edit("test_described.py", "(16, 32)", "(8, 32)")
    result = recorded.run("--gpuperf", "--gpuperf-open=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*tensor_map float32*16,64*box=16,32*"])
