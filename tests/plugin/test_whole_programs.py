"""Files of whole programs as kernels of a suite: by NVRTC with what the host declares, by nvcc with its code."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence
from stand_in_nvcc import StandInNvcc, forget_nvcc, found_as
from suite_under_test import HOG, Suite

KERNEL = """
#include <stdio.h>
__global__ void scale(float* x, uint n) { if (threadIdx.x < n) x[threadIdx.x] *= M_PI; }
"""
MAIN = """
#include <vector>
int main() {
    std::vector<float> host(32);
    float* x;
    cudaMalloc(&x, 128);
    scale<<<1, 32>>>(x, 32);
}
"""
TEST = """
def test_scale(cuda_kernel):
    assert cuda_kernel("whole.cu", "scale"{how}).registers > 0
"""


@pytest.fixture
def whole(suite: Suite) -> Suite:
    for path in suite.path.glob("test_*.py"):
        path.unlink()
    suite.write("whole.cu", KERNEL + MAIN)
    return suite


def test_nvrtc_refuses_code_of_the_host_with_both_remedies(whole: Suite) -> None:
    whole.write("test_whole.py", TEST.format(how=""))
    result = whole.run("--gpuperf-arch=sm_90")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '*whole.cu:7: namespace "std" has no member "vector"',
            "*Line 7 of *whole.cu is code of the host, *",
            "*__CUDACC_RTC__*",
        ]
    )
    whole.write("whole.cu", f"{KERNEL}\n#ifndef __CUDACC_RTC__\n{MAIN}\n#endif\n")
    whole.run("--gpuperf-arch=sm_90").assert_outcomes(passed=1)


def test_nvcc_is_recorded_under_its_name_and_judged(
    whole: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stand_in = StandInNvcc(tmp_path_factory.mktemp("nvcc"))
    stand_in.makes(KERNEL.replace("uint", "unsigned int").replace("#include <stdio.h>", "").replace("M_PI", "3.14159f"))
    found_as(monkeypatch, lambda: str(stand_in.folder / "nvcc"))
    try:
        whole.write("test_whole.py", TEST.format(how=', compiler="nvcc"'))
        whole.run("--update-baselines", "--gpuperf-arch=sm_90").assert_outcomes(passed=1)
        assert [*read_evidence(whole.path / "baselines" / "sm_90" / "test_whole.jsonl")["toolchains"]] == [
            "nvcc 13.0.88"
        ]
        whole.run("--gpuperf", "--gpuperf-arch=sm_90").assert_outcomes(passed=1)
        forget_nvcc()
        stand_in.makes(HOG.replace("hog", "scale"), "--maxrregcount=32")
        whole.write("whole.cu", KERNEL + MAIN + "int other;")
        result = whole.run("--gpuperf", "--gpuperf-arch=sm_90")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*scale*WORSE*"])
    finally:
        forget_nvcc()


def test_a_compiler_that_is_none(whole: Suite) -> None:
    whole.write("test_whole.py", TEST.format(how=', compiler="clang"'))
    result = whole.run("--gpuperf-arch=sm_90")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*BadArgument: cuda_kernel: compiler='clang' is none of nvrtc, nvcc"])


def test_the_same_kernel_by_either_compiler_is_two(
    whole: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stand_in = StandInNvcc(tmp_path_factory.mktemp("nvcc"))
    stand_in.makes(HOG.replace("hog", "scale"))
    found_as(monkeypatch, lambda: str(stand_in.folder / "nvcc"))
    try:
        whole.write("whole.cu", KERNEL)
        whole.write("test_whole.py", TEST.format(how="") + TEST.format(how=', compiler="nvcc"').split("\n", 2)[2])
        result = whole.run("--gpuperf", "--gpuperf-arch=sm_90")
        result.assert_outcomes(passed=1)
        result.stdout.re_match_lines([r"  scale +\d.* NEW", r"  scale \[compiler=nvcc\] .* NEW"])
    finally:
        forget_nvcc()
