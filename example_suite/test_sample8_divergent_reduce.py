"""A branch that splits warps in half, or takes whole warps.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 8).
"""

import math

import numpy as np
import pytest

SOURCE = "kernels/sample8_divergent_reduce.cu"
KERNELS = ("sum_by_half_warp", "sum_by_warp", "sum_by_selection")


def stretch_of(n, warps):
    """Elements of one warp, a multiple of 32, so that the warps together have at least n."""
    return -(-n // (warps * 32)) * 32


def launch_over(kernel, partial, n):
    return kernel.launch(grid=partial.size // 8, block=256, args=(partial, n, stretch_of(n, partial.size)))


def test_every_stretch_adds_up(cuda_kernel, gpu):
    n, warps = 100_003, 24
    i = np.arange(n)
    starts = i[:: stretch_of(n, warps)]
    for kernel in [cuda_kernel(SOURCE, name) for name in KERNELS]:
        partial = gpu.full(warps, float("nan"), dtype="float64")
        launch_over(kernel, partial, n)()
        is_cheap = i % 64 < 32 if kernel.name == "sum_by_warp" else i % 32 < 16
        expected = np.zeros(warps)
        expected[: len(starts)] = np.add.reduceat(np.where(is_cheap, i / n, np.exp(-i / n)), starts)
        np.testing.assert_allclose(gpu.to_host(partial), expected, rtol=1e-5, err_msg=kernel.name)


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_reduction_with_a_branch(cuda_kernel, gpu, gpuperf):
    n = 2**28
    mean = 1 / 4 + (1 - math.exp(-1)) / 2  # half of the integral of x over [0, 1), and half of that of exp(-x)

    def measure(name):
        partial = gpu.zeros(gpu.sm_count * gpu.max_threads_per_sm // 32, dtype="float64")

        def check():
            assert float(partial.sum()) / n == pytest.approx(mean, rel=1e-4)

        return gpuperf(launch_over(cuda_kernel(SOURCE, name), partial, n), check=check)

    by_half_warp, by_warp, by_selection = (measure(name) for name in KERNELS)
    assert by_warp.time_ns < by_half_warp.time_ns
    assert by_selection.time_ns == pytest.approx(by_half_warp.time_ns, rel=0.2)  # a split warp does both paths, too
