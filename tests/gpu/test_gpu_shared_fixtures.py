"""A kernel that a session's fixture compiles: recorded and judged under each test that uses it, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.gpu

KERNEL = """
extern "C" __global__ void scale(const float* from, float* to)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = from[i];
    for (int k = 0; k < 64; ++k) x = x * 1.0f + 0.0f;
    to[i] = x * 2;
}
"""
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def kernels(cuda_kernel):
    return cuda_kernel("scale.cu", "scale")
"""
SUITE = """
import pytest

def test_first(kernels):
    assert kernels.registers > 0

@pytest.mark.parametrize("n", [1 << 16, 1 << 20])
def test_scale(kernels, gpu, gpuperf, n):
    x = gpu.random(n, seed=1)
    y = gpu.empty_like(x)
    gpuperf(kernels.launch(n // 256, 256, (x, y)), check=lambda: gpu.ulp_error(y, gpu.to_host(x) * 2) == 0)
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_it_is_on_record_under_each_test_that_uses_it(cuda_device: Any, pytester: pytest.Pytester) -> None:
    cuda_device.release_unused()
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_shared=SUITE)
    (pytester.path / "scale.cu").write_text(KERNEL, encoding="utf-8")
    short = ("--update-baselines=new", "-k", "first or 65536")
    recorded = run(pytester, *short)
    assert recorded.ret == 0, recorded.stdout.str()
    text = (pytester.path / "baselines" / cuda_device.facts.arch / "test_shared.jsonl").read_text()
    assert "test_first" in text
    assert "test_scale[65536]" in text
    again = run(pytester, "--gpuperf", "-v", "-k", "first or 65536")
    assert again.ret == 0, again.stdout.str()
    again.stdout.fnmatch_lines(["*test_shared.py::test_first*", "*scale*UNCHANGED*"])
