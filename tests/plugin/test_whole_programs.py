"""Files of whole programs as kernels of a suite, by nvcc.  What NVRTC takes of them is in tests/unit/compile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from evidence_tree import read_evidence
from stand_in_nvcc import StandInNvcc, forget_nvcc, found_as
from suite_under_test import HOG, Suite

ARCH = "--gpuperf-arch=sm_90"
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
BY_NVCC = """
def test_scale(cuda_kernel):
    assert cuda_kernel("whole.cu", "scale", compiler="nvcc").registers > 0
"""


@pytest.fixture
def whole(suite: Suite) -> Suite:
    (suite.path / "test_suite.py").unlink()
    suite.write("whole.cu", KERNEL + MAIN)
    return suite


@pytest.fixture
def stand_in(
    whole: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandInNvcc]:
    made = StandInNvcc(tmp_path_factory.mktemp("nvcc"))
    made.makes(KERNEL.replace("uint", "unsigned int").replace("#include <stdio.h>", "").replace("M_PI", "3.14159f"))
    found_as(monkeypatch, lambda: str(made.folder / "nvcc"))
    yield made
    forget_nvcc()


def test_nvcc_is_recorded_under_its_name_and_judged(whole: Suite, stand_in: StandInNvcc) -> None:
    whole.write("test_whole.py", BY_NVCC)
    whole.run("--update-baselines", ARCH).assert_outcomes(passed=1)
    recorded = read_evidence(whole.path / "baselines" / "sm_90" / "test_whole.jsonl")
    assert [*recorded["toolchains"]] == ["nvcc 13.0.88"]
    whole.run("--gpuperf", ARCH).assert_outcomes(passed=1)
    stand_in.makes(HOG.replace("hog", "scale"), "--maxrregcount=32")
    whole.write("whole.cu", KERNEL + MAIN + "int other;")
    result = whole.run("--gpuperf", ARCH)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*scale*WORSE*"])
