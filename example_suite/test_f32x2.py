"""Two multiply-adds in one instruction: f32x2, by the machine code alone.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/f32x2.cu"
NAMES = ("steps_one_by_one", "steps_of_two")
STEPS = 64


@pytest.mark.parametrize("name", NAMES)
def test_values_are_right(cuda_kernel, gpu, name):
    """Where the GPU has the instruction, and where it does not."""
    pairs, a, b = 1003, np.float32(-0.875), np.float32(0.5)
    x = gpu.random((pairs, 2), seed=410, low=-1, high=1)
    y = gpu.empty((pairs, 2))
    cuda_kernel(SOURCE, name).launch(grid=8, block=128, args=(y, x, a, b, pairs))()
    expected = gpu.to_host(x).astype(np.float64)
    for _ in range(STEPS):
        expected = expected * float(a) + float(b)
    np.testing.assert_allclose(gpu.to_host(y), expected, rtol=1e-5)


def test_half_as_many_instructions(cuda_kernel, record_property):
    kernels = (cuda_kernel(SOURCE, name, arch=("sm_90", "sm_100", "sm_120")) for name in NAMES)
    counts = [{arch: one.opcodes["fp32"] for arch, one in kernel.profiles.items()} for kernel in kernels]
    for arch in counts[0]:
        record_property(f"saved on {arch}", counts[0][arch] / counts[1][arch])
    assert counts == [
        {"sm_90": 2 * STEPS, "sm_100": 2 * STEPS, "sm_120": 2 * STEPS},  # the compiler packs nothing by itself
        {"sm_90": 2 * STEPS, "sm_100": STEPS, "sm_120": 2 * STEPS},  # and ptxas takes pairs apart for sm_120
    ]
