"""Multiplying matrices: reuse through shared memory.

From the "Optimization" chapter of a CUDA course.
"""

import numpy as np
import pytest

SOURCE = "kernels/matmul.cu"
WIDTHS = {"matmul_naive": 32, "matmul_tiled16": 16, "matmul_tiled32": 32, "matmul_past_l1": 32}
"""Width of a block; of a tile as well, where there are tiles."""


def launch_over(kernel, a, b, c):
    n, width = len(a), WIDTHS[kernel.name]
    return kernel.launch(grid=(n // width, n // width), block=(width, width), args=(a, b, c, n))


@pytest.mark.parametrize("name", WIDTHS)
def test_product_is_right(cuda_kernel, gpu, name):
    n = 96
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (240, 241))
    c = gpu.empty((n, n))
    launch_over(cuda_kernel(SOURCE, name), a, b, c)()
    expected = gpu.to_host(a).astype(np.float64) @ gpu.to_host(b).astype(np.float64)
    np.testing.assert_allclose(gpu.to_host(c), expected, rtol=0, atol=1e-6 * n)


@pytest.mark.gpuperf(budget_s=1.5)
def test_product_of_large_matrices(cuda_kernel, gpu, gpuperf):
    n = 2304  # the smallest whose matrices exceed the L2 of an H200
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (242, 243))

    def measure(name):
        c = gpu.empty((n, n))

        def check():  # Freivalds: C x = A (B x) for a random x; one missing product of 2304 shows
            x = gpu.random(n, seed=244, low=-1, high=1).astype("float64")
            gpu.assert_allclose(times(c, x), times(a, times(b, x)), rtol=0, atol=0.02)

        return gpuperf(launch_over(cuda_kernel(SOURCE, name), a, b, c), bytes=3 * a.nbytes, flops=2 * n**3, check=check)

    naive, tiled16, tiled32, past_l1 = (measure(name) for name in WIDTHS)
    # The naive loads mostly hit the L1: without it, tiles are worth more.
    assert max(tiled16.time_ns, tiled32.time_ns) < naive.time_ns < past_l1.time_ns


def times(matrix, vector):
    """Matrix times vector in float64, by plain sums."""
    return (matrix.astype("float64") * vector).sum(axis=1)
