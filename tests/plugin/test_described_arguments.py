"""Workloads whose arguments are opaque, such as textures and TMA descriptors: recorded, unchanged, and paired."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from suite_under_test import RECORD, SIMULATED, Suite

KERNEL = """
struct alignas(64) Descriptor { unsigned long long opaque[16]; };
extern "C" __global__ void work(cudaTextureObject_t from, const __grid_constant__ Descriptor map, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = tex1Dfetch<float>(from, i) + map.opaque[i & 15];
}
"""
TEST = """
import os
import numpy as np


def test_work(cuda_kernel, gpu, gpuperf):
    texture, tiles = os.urandom(8), np.frombuffer(os.urandom(128), "uint8")  # addresses differ by process
    launch = cuda_kernel("work.cu", "work").launch(grid=8, block=128, args=(texture, tiles, gpu.empty(1024), 1024))
    gpuperf(launch)
"""


@pytest.fixture
def described(suite: Suite) -> Suite:
    for path in suite.path.glob("test_*.py"):
        path.unlink()
    suite.write("work.cu", KERNEL)
    suite.write("test_described.py", TEST)
    return suite


def test_code_with_opaque_arguments_is_judged_without_a_gpu(described: Suite) -> None:
    assert described.run("--update-baselines", "--gpuperf-arch=sm_90").ret == 0
    result = described.run("--gpuperf", "--gpuperf-arch=sm_90")
    result.stdout.fnmatch_lines(["*work*UNCHANGED*", "*1 static only*"])


@pytest.fixture
def recorded(described: Suite) -> Suite:
    described.write("conftest.py", SIMULATED.replace("def work(a, b, n)", "def work(texture, tiles, a, n)"))
    described.edit("conftest.py", "    b[:] = a", "    a[:] = 1")
    assert described.run(*RECORD).ret == 0
    return described


def test_opaque_arguments_have_their_size_on_record(recorded: Suite) -> None:
    tree = read_evidence(recorded.path / "baselines/simulated-gpu/test_described.jsonl")
    texture, tiles, *_ = tree["tests"]["test_work"]["work"]["identity"]["arguments"]
    assert (texture, tiles) == ("opaque[8]", "opaque[128]")
    result = recorded.run("--gpuperf", "-v", subprocess=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*work * / 0 / 100%*UNCHANGED*"])


def test_changed_code_is_paired_on_the_same_opaque_arguments(recorded: Suite) -> None:
    recorded.edit("work.cu", "map.opaque[i & 15]", "map.opaque[i & 15] * 3")
    result = recorded.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["work  SLOWER  on simulated-gpu*", "*paired*", "*slower, in two processes*"])
