"""A matrix product that is fastest at the lowest occupancy: tiles of registers.

From the blog article "Five basic performance advice for porting kernels to the GPU" and the "Optimization" chapter of a
CUDA course.
"""

import numpy as np
import pytest

SOURCE = "kernels/matmul_register_tile.cu"
WIDTHS = (1, 2, 4, 8)
"""A thread owns so many rows and columns."""
THREADS = 16
"""Along each side of a block."""
UNUSED_BYTES = 96 * 1024
"""Of shared memory: with it two blocks fit an SM of an H200."""


def launch_over(cuda_kernel, width, a, b, c, unused_bytes=0):
    n = len(a)
    kernel = cuda_kernel(SOURCE, "register_tile", name_expression=f"register_tile<{width}>")
    blocks = n // (THREADS * width)
    return kernel.launch(grid=(blocks, blocks), block=(THREADS, THREADS), args=(a, b, c, n), shared_bytes=unused_bytes)


@pytest.mark.parametrize("width", WIDTHS)
def test_product_is_right(cuda_kernel, gpu, width):
    n = 256
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (420, 421))
    c = gpu.empty((n, n))
    launch_over(cuda_kernel, width, a, b, c)()
    expected = gpu.to_host(a).astype(np.float64) @ gpu.to_host(b).astype(np.float64)
    np.testing.assert_allclose(gpu.to_host(c), expected, rtol=0, atol=1e-6 * n)


@pytest.mark.gpuperf(budget_s=1.0)
def test_product_of_large_matrices(cuda_kernel, gpu, gpuperf):
    n = 2048  # the last tile makes 256 blocks, for the 264 that an H200 holds
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (422, 423))

    def measure(width, unused_bytes=0, name="{0} x {0} per thread"):
        c = gpu.empty((n, n))

        def check():  # Freivalds: C x = A (B x) for a random x; one missing product of 2048 shows
            x = gpu.random(n, seed=424, low=-1, high=1).astype("float64")
            gpu.assert_allclose(times(c, x), times(a, times(b, x)), rtol=0, atol=0.02)

        launch = launch_over(cuda_kernel, width, a, b, c, unused_bytes)
        return gpuperf(launch, name=name.format(width), bytes=3 * a.nbytes, flops=2 * n**3, check=check)

    one, two, four, eight = (measure(width) for width in WIDTHS)
    # The control: as few warps without the tile of registers gain nothing.
    few_warps = measure(1, UNUSED_BYTES, "{0} x {0} per thread, 16 warps per SM")
    assert eight.time_ns < four.time_ns < two.time_ns < one.time_ns <= few_warps.time_ns


def times(matrix, vector):
    """Matrix times vector in float64, by plain sums."""
    return (matrix.astype("float64") * vector).sum(axis=1)
