"""A kernel out of a fat binary for two architectures: the GPU launches the code that was compiled for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_gpuperf.device.cuda import CudaDevice

pytestmark = pytest.mark.gpu

FAT_BINARY = Path(__file__).parents[1] / "unit" / "compile" / "machine_code" / "fat_binaries" / "work.fatbin"
TEST = f"""
def test_work(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel.from_cubin({str(FAT_BINARY)!r}, "work", arch=["sm_80", "sm_90"])
    assert kernel.arch == "sm_90"
    assert sorted(kernel.profiles) == ["sm_80", "sm_90"]
    x, y = gpu.random(1 << 20, seed=1), gpu.empty(1 << 20)
    launch = kernel.launch(grid=512, block=256, args=(x, y, 1 << 20))
    gpuperf(launch, bytes=2 * x.nbytes, check=lambda: gpu.assert_equal(y, x * 2))
"""


def test_a_fat_binary_of_nvcc_is_launched_recorded_and_unchanged(
    cuda_device: CudaDevice, pytester: pytest.Pytester
) -> None:
    if cuda_device.facts.arch != "sm_90":
        pytest.skip("the fat binary has machine code for sm_80 and sm_90, and is launched on sm_90")
    pytester.makepyfile(test_suite=TEST)
    recorded = pytester.runpytest_subprocess("--update-baselines")
    recorded.assert_outcomes(passed=1)
    assert {path.name for path in (pytester.path / "baselines").iterdir()} >= {"sm_80", "sm_90"}
    gated = pytester.runpytest_subprocess("--gpuperf")
    gated.assert_outcomes(passed=1)
    gated.stdout.re_match_lines([r"  work .* UNCHANGED$"])
