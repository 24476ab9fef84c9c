"""The last screen of a run: short whatever the suite's size, and nothing is lost of it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from suite_under_test import with_baselines

KERNEL = """
#include "common.cuh"
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = step(a[i]);
}
"""
COMMON = "__device__ inline float step(float x) { return x * 0.5f + FACTOR; }\n"
STACK = """
__device__ inline float step(float x)
{
    float t[64];
    for (int i = 0; i < 64; ++i) t[i] = x * i;
    t[(int)(x + FACTOR) & 63] = x;
    return t[(int)x & 63];
}
"""
TEST = """
import pytest

@pytest.mark.parametrize("size", [1024 * (i + 1) for i in range({sizes})])
def test_work{number}(cuda_kernel, gpu, gpuperf, size):
    kernel = cuda_kernel("work.cu", "work", options=["-DFACTOR={number}.5f"])
    a = gpu.random(size, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=(size + 255) // 256, block=256, args=(a, b, size)))
"""
FILES = {
    "work.cu": KERNEL,
    "common.cuh": COMMON,
    **{f"test_work{number}.py": TEST.format(number=number, sizes=6) for number in range(8)},
}
GATED = ("--gpuperf", "--gpuperf-arch=sm_90")


def run(suite, *arguments):
    return suite.run(*GATED, *arguments)


@pytest.fixture
def recorded_suite(suite, shared_folder):
    """48 workloads, with baselines."""
    return with_baselines(suite, shared_folder / "wide", FILES, *GATED, "--update-baselines")


PROGRESS = re.compile(r"(\S+\.py )?[cF]+ *(\[ *\d+%\])?")
"""A line of pytest's own: with a letter for each test, eight or more of them for 48 tests in eight files."""


def own_lines(result):
    return [line for line in result.stdout.lines if not PROGRESS.fullmatch(line)]


def test_wide_suite_fits_a_screen_and_a_change_in_a_header_is_one_message(recorded_suite):
    update = len(run(recorded_suite, "--update-baselines=all").stdout.lines)
    assert update <= 40
    green = run(recorded_suite, "--junitxml=green.xml")
    assert green.ret == 0
    assert len(own_lines(green)) <= 17
    green.stdout.fnmatch_lines(["48 workloads: 48 UNCHANGED"])
    cases = list(ElementTree.parse(recorded_suite.path / "green.xml").iter("testcase"))
    assert len(cases) == 48
    assert not any(case.find("skipped") is not None for case in cases)
    assert cases[0].find("properties/property[@name='gpuperf.status']").get("value") == "static only"

    recorded_suite.path.joinpath("common.cuh").write_text(STACK)
    red = run(recorded_suite)
    assert red.ret == 1
    assert len(own_lines(red)) <= 52
    red.stdout.fnmatch_lines([
        "*test_work0[[]1024[]] and 47 more like it, in 8 tests*", "*stack frame 0 -> 256 bytes*",
        "test_work0.py::test_work0[[]…[]]  6 workloads *WORSE",
        "and 12 workloads more; -v lists every one",
        "48 workloads: 48 WORSE", "next: see why: gpuperf explain 'test_work0.py::test_work0[[]1024[]]'*",
        "FAILED test_work0.py::test_work0[[]1024[]] - and 47 more*", "*48 failed*",
    ])  # fmt: skip
    assert str(red.stdout).count("cause: stack") == 1
    listed = run(recorded_suite, "-v", "--deselect=test_work1.py")
    assert len(re.findall("^_+ test_work", str(listed.stdout), re.MULTILINE)) == 42


def test_one_bad_kernel_of_many_sizes_is_one_message_and_so_is_one_that_does_not_compile(recorded_suite):
    bad = recorded_suite.path / "test_work3.py"
    bad.write_text(bad.read_text().replace('"-DFACTOR=3.5f"', '"-DFACTOR=3.5f", "-maxrregcount=16", "-DSPILL"'))
    recorded_suite.path.joinpath("common.cuh").write_text(f"#ifdef SPILL\n{STACK}#else\n{COMMON}#endif\n")
    red = run(recorded_suite, "--durations=0", "--durations-min=0")
    timed = [line for line in red.stdout.lines if re.match(r"\d+\.\d\ds ", line)]
    assert sum("s call " in line for line in timed) == 48  # those that are shown as one, too
    assert len(red.stdout.lines) - len(timed) <= 60
    red.stdout.fnmatch_lines(["*test_work3[[]1024[]] and 5 more like it*", "48 workloads: 6 WORSE, 42 UNCHANGED"])
    bad.write_text(bad.read_text().replace("-DSPILL", "-DFACTOR2=]").replace("FACTOR=3.5f", "FACTOR=("))
    broken = run(recorded_suite)
    assert len(broken.stdout.lines) <= 60
    assert str(broken.stdout).count("CompileError: ") <= 3
    broken.stdout.fnmatch_lines(["*test_work3[[]1024[]] and 5 more like it*", "*6 failed, 42 static only*"])
