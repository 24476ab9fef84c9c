"""Launches with opaque arguments, such as textures and TMA descriptors, and kernels whose constants a test fills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from evidence_tree import read_evidence
from suite_under_test import HERE, RECORD, Suite, with_baselines

CONFTEST = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import pytest
from simulated_gpu import SimulatedGpu

device = None

def opaque(texture, tiles, to, n):
    to[:] = 1

def filled(a, b, n):
    b[:] = a

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    global device
    device = SimulatedGpu(implementations={{"opaque": opaque, "filled": filled}})
    return device

def pytest_terminal_summary(terminalreporter):
    written = device.written if device is not None else []
    codes = sorted({{code for code, _, _ in written}})
    for code in codes:
        contents = {{content[:4].hex() for other, symbol, content in written if other == code}}
        terminalreporter.write_line(f"filled {{codes.index(code)}}: {{sorted(contents)}}")
"""
OPAQUE = """
struct alignas(64) Descriptor { unsigned long long opaque[16]; };
extern "C" __global__ void opaque(cudaTextureObject_t from, const __grid_constant__ Descriptor map, float* to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = tex1Dfetch<float>(from, i) + map.opaque[i & 15];
}
"""
FILLED = """
__constant__ float weights[3];
extern "C" __global__ void filled(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = a[i] * weights[0] * weights[1] + weights[2];
}
"""
TEST = """
import os
import numpy as np

def test_opaque(cuda_kernel, gpu, gpuperf):
    texture, tiles = os.urandom(8), np.frombuffer(os.urandom(128), "uint8")  # addresses differ by process
    launch = cuda_kernel("opaque.cu", "opaque").launch(grid=8, block=128, args=(texture, tiles, gpu.empty(1024), 1024))
    gpuperf(launch)

def test_filled(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("filled.cu", "filled")
    kernel.set_constant("weights", np.full(3, 1.0, dtype="float32"))
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=128, args=(a, b, 1024)), check=lambda: gpu.assert_equal(b, a))
"""
FILES = {"opaque.cu": OPAQUE, "filled.cu": FILLED, "test_suite.py": TEST, "conftest.py": CONFTEST}
ONE, TWO = "0000803f", "00000040"


@pytest.fixture
def measured(suite: Suite, shared_folder: Path) -> Suite:
    return with_baselines(suite, shared_folder / "opaque", FILES, *RECORD)


def test_opaque_arguments_have_their_size_on_record_and_other_constants_are_a_change(measured: Suite) -> None:
    tree = read_evidence(measured.path / "baselines/simulated-gpu/test_suite.jsonl")
    texture, tiles, *_ = tree["tests"]["test_opaque"]["opaque"]["identity"]["arguments"]
    assert (texture, tiles) == ("opaque[8]", "opaque[128]")
    same = measured.run("--gpuperf", "-v")
    same.assert_outcomes(passed=2)
    same.stdout.re_match_lines([r" *opaque .* / 0 / 100% .*UNCHANGED", r" *filled +.*UNCHANGED"])
    measured.edit("test_suite.py", "1.0,", "2.0,")
    other = measured.run("--gpuperf")
    other.assert_outcomes(passed=2)
    other.stdout.re_match_lines([r" *filled +.* us .* SAME$", re.escape(f"filled 0: ['{TWO}']")])


def test_changed_code_is_paired_on_the_same_arguments_and_constants(measured: Suite) -> None:
    measured.edit("opaque.cu", "map.opaque[i & 15]", "map.opaque[i & 15] * 3")
    measured.edit("filled.cu", "+ weights[2]", "+ weights[2] + b[i] * a[n - i - 1] * 3.0f")
    result = measured.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["opaque  SLOWER  on simulated-gpu*", "*paired*", "*slower, in two processes*"])
    result.stdout.fnmatch_lines([f"filled 0: ['{ONE}']", f"filled 1: ['{ONE}']"])


def test_code_is_judged_without_a_gpu(measured: Suite) -> None:
    measured.write("conftest.py", "")
    result = measured.run("--gpuperf", "--gpuperf-arch=sm_90")
    result.stdout.fnmatch_lines(["*opaque*UNCHANGED*", "*filled*UNCHANGED*", "*2 static only*"])
