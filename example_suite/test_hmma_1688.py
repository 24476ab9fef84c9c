"""Tensor cores: a warp multiplies small matrices that are spread over its registers.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and the "Optimization" chapter
of a CUDA course.  The product without tensor cores is that of kernels/matmul.cu.
"""

import numpy as np
import pytest

SOURCE = "kernels/hmma_1688.cu"
ROWS, COLUMNS, DEPTH = 16, 8, 8
"""Of a tile of results, and how many products one HMMA.1688 adds up for each."""


def whole_numbers(shape, seed):
    """In half precision: sums of their products are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def product(a, b_by_columns):
    """In float64; b[column][row], as the kernels have it."""
    return a.astype(np.float64) @ b_by_columns.astype(np.float64).T


def test_a_tile_is_right(cuda_kernel, gpu, record_property):
    kernels = [cuda_kernel(SOURCE, name) for name in ("tile_mma", "tile_scalar")]
    a, b = whole_numbers((ROWS, DEPTH), seed=200), whole_numbers((COLUMNS, DEPTH), seed=201)
    start = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    lanes = gpu.empty(start.shape)
    for kernel, more in zip(kernels, ([lanes], []), strict=True):
        d = gpu.array(start)
        kernel.launch(grid=1, block=32, args=(gpu.array(a), gpu.array(b), d, *more))()
        np.testing.assert_array_equal(gpu.to_host(d), start + product(a, b))
    record_property("lanes", np.unique(gpu.to_host(lanes)).size)


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_rate_of_tensor_cores(cuda_kernel, gpu, gpuperf):
    rounds, tiles = 4096, 8 * 16 * gpu.sm_count

    def measure(depth):
        kernel = cuda_kernel(SOURCE, "repeat_mma", name_expression=f"repeat_mma<{depth}>")
        a, b = whole_numbers((ROWS, depth), seed=205), whole_numbers((COLUMNS, depth), seed=206)
        d = gpu.empty((tiles, ROWS, COLUMNS))
        args = (gpu.array(a).view("uint32"), gpu.array(b).view("uint32"), d, rounds)
        expected = rounds * product(a, b)
        return gpuperf(
            kernel.launch(grid=gpu.sm_count, block=512, args=args),
            flops=2 * ROWS * COLUMNS * depth * rounds * tiles,
            check=lambda: np.testing.assert_array_equal(gpu.to_host(d), np.broadcast_to(expected, d.shape)),
        )

    of_8, of_16 = measure(8), measure(16)
    assert of_8.flops < 1.05 * of_16.flops


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_product_by_tensor_cores(cuda_kernel, gpu, gpuperf):
    n = 2048
    tiled, mma = cuda_kernel("kernels/matmul.cu", "matmul_tiled32"), cuda_kernel(SOURCE, "matmul_mma")
    a, b_by_columns = (gpu.random((n, n), "float16", seed=seed, low=-1, high=1) for seed in (207, 208))
    singles = a.astype("float32"), b_by_columns.astype("float32").T.copy()
    by_fma, by_mma = gpu.empty((n, n)), gpu.empty((n, n))
    ordinary = tiled.launch(grid=(n // 32, n // 32), block=(32, 32), args=(*singles, by_fma, n))
    by_tensor = mma.launch(grid=(n // 128, n // 128), block=256, args=(a, b_by_columns, by_mma, n))
    slow = gpuperf(ordinary, flops=2 * n**3)
    fast = gpuperf(by_tensor, flops=2 * n**3, check=lambda: gpu.assert_allclose(by_mma, by_fma, rtol=0, atol=5e-3))
    assert fast.time_ns < slow.time_ns
