"""Inverting the normal distribution: calls, branches and slow divisions inside one small function.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest
from scipy import special

SOURCE = "kernels/moro_inversion.cu"
VARIANTS = ("Inlined", "Called", "FastLog", "BothSides")


def launch_over(cuda_kernel, variant, numbers, out, rounds, blocks):
    kernel = cuda_kernel(SOURCE, "sum_quantiles", name_expression=f"sum_quantiles<{variant}>")
    return kernel.launch(grid=(blocks,), block=(128,), args=(numbers, out, numbers.size, rounds))


def sums(numbers, rounds, ndtri):
    """In float64; NumPy and CuPy arrays have an inverse of the normal distribution of their own."""
    total = 0.0
    for one in range(rounds):
        total = total + ndtri(((numbers ^ np.uint32(one << 8)).astype("float64") + 0.5) / 2**32)
    return total


@pytest.mark.parametrize("variant", VARIANTS)
def test_quantiles_are_right(cuda_kernel, gpu, variant):
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], dtype=np.uint32)
    numbers = np.concatenate([ends, np.random.default_rng(130).integers(2**32, size=100_003, dtype=np.uint32)])
    out = gpu.empty(numbers.size)
    launch_over(cuda_kernel, variant, gpu.array(numbers), out, rounds=3, blocks=100)()
    tolerance = 3e-4 if variant == "FastLog" else 6e-6
    np.testing.assert_allclose(gpu.to_host(out), sums(numbers, 3, special.ndtri), rtol=3e-6, atol=tolerance)


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_inverting_many_numbers(cuda_kernel, gpu, gpuperf):
    n, rounds = 2**21, 64
    random = np.random.default_rng(131).integers(2**32, size=n, dtype=np.uint32)

    def measure(variant, order, numbers):
        out = gpu.empty(n)

        def check():
            from cupyx.scipy.special import ndtri

            gpu.assert_allclose(out, sums(given, rounds, ndtri), rtol=2e-5, atol=1e-4 * rounds)

        given = gpu.array(numbers)
        launch = launch_over(cuda_kernel, variant, given, out, rounds, blocks=16 * gpu.sm_count)
        return gpuperf(launch, name=f"{variant}, {order} numbers", bytes=2 * out.nbytes, check=check)

    inlined, called, fast_log, both_sides = (measure(variant, "random", random) for variant in VARIANTS)
    one_side_per_warp = measure("Inlined", "sorted", np.sort(random))
    assert inlined.time_ns < called.time_ns
    assert fast_log.time_ns < inlined.time_ns
    assert one_side_per_warp.time_ns < inlined.time_ns
    assert both_sides.time_ns < 1.3 * inlined.time_ns  # nearly every warp takes both sides anyway
