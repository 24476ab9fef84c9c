"""Loading the next value before computing with the current one.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/register_pipelining.cu"
NAMES = ("plain", "prefetch_1", "prefetch_4", "async_tiles")
BLOCK = 128
BLOCKS_OF_A_FULL_SM = 16
CHAIN = 64


def launch_over(kernel, given, out):
    """``given`` has a row per step."""
    return kernel.launch(grid=(out.size // BLOCK,), block=(BLOCK,), args=(given, out, given.shape[0]))


@pytest.mark.parametrize("steps", [4, 8, 64])
def test_sums_are_right(cuda_kernel, gpu, steps):
    given = np.random.default_rng(80).uniform(0.5, 1.5, (steps, 3 * BLOCK)).astype(np.float32)
    for kernel in [cuda_kernel(SOURCE, name) for name in NAMES]:
        out = gpu.zeros(3 * BLOCK)
        launch_over(kernel, gpu.array(given), out)()
        expected = 2 * given.sum(axis=0, dtype="float64")
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-5, err_msg=kernel.name)


@pytest.mark.gpuperf(budget_s=0.6)
def test_computing_while_loading(cuda_kernel, gpu, gpuperf):
    rows, threads = 2048, gpu.sm_count * BLOCK
    lonely = gpu.random((rows, threads), seed=81, low=0.5, high=1.5)
    crowded = lonely.reshape(rows // BLOCKS_OF_A_FULL_SM, threads * BLOCKS_OF_A_FULL_SM)

    def measure(name, given, where):
        out = gpu.zeros(given.shape[1])
        return gpuperf(
            launch_over(cuda_kernel(SOURCE, name), given, out),
            name=f"{name}, {where}",
            bytes=given.nbytes,
            flops=2 * CHAIN * given.size,
            check=lambda: gpu.assert_allclose(out, 2 * given.sum(axis=0, dtype="float64"), rtol=2e-5),
        )

    plain, one_ahead, four_ahead, tiles = (measure(name, lonely, "4 warps per SM") for name in NAMES)
    # The control: on a full SM other warps hide most of the wait, and loading ahead gains little.
    full_plain, full_ahead = (measure(name, crowded, "64 warps per SM") for name in NAMES[:2])
    assert max(four_ahead.time_ns, tiles.time_ns) < one_ahead.time_ns < plain.time_ns
    assert full_plain.time_ns / full_ahead.time_ns < plain.time_ns / one_ahead.time_ns
