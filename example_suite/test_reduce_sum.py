"""Adding up an array: barriers, warp shuffles, and enough work per thread.

From the "Optimization" chapter of a CUDA course.
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/reduce_sum.cu"
BLOCK = 256
ELEMENTS_PER_THREAD = {"reduce_tree": 1, "reduce_tree_shfl": 1, "reduce_shfl": 1, "reduce_grid_stride": 64}


def launch_over(kernel, given, partial, n):
    grid = -(-n // (BLOCK * ELEMENTS_PER_THREAD[kernel.name]))
    return kernel.launch(grid=(grid,), block=(BLOCK,), args=(given, partial, n))


def test_partial_sums_add_up(cuda_kernel, gpu):
    kernels = [cuda_kernel(SOURCE, name) for name in ELEMENTS_PER_THREAD]
    for n in (1, 255, 3 * 16_384 + 2, 1_000_003):
        given, partial = gpu.random(n, seed=250), gpu.zeros(-(-n // BLOCK))
        for kernel in kernels:
            partial.fill(0)
            launch_over(kernel, given, partial, n)()
            expected = gpu.to_host(given).sum(dtype=np.float64)
            assert gpu.to_host(partial).sum(dtype=np.float64) == pytest.approx(expected, rel=1e-5), (kernel.name, n)


def test_sum_of_an_array(cuda_kernel, gpu, gpuperf):
    n = 2**28
    given = gpu.random(n, seed=252)
    total = functools.cache(lambda: float(given.sum(dtype="float64")))

    def measure(name):
        partial = gpu.zeros(n // BLOCK)  # for all, so that any of them can stand in for another

        def check():
            assert float(partial.sum(dtype="float64")) == pytest.approx(total(), rel=1e-5)

        launch = launch_over(cuda_kernel(SOURCE, name), given, partial, n)
        return gpuperf(launch, bytes=given.nbytes, flops=n, check=check)

    tree, tree_shfl, shfl, grid_stride = (measure(name) for name in ELEMENTS_PER_THREAD)

    assert shfl.time_ns < tree_shfl.time_ns < tree.time_ns
    # With all barriers but one gone, what is left is one load per thread; four of 16 bytes gain far more.
    assert tree.time_ns / shfl.time_ns <= 0.6 * shfl.time_ns / grid_stride.time_ns
