"""Adding up an array, by the suite's fastest reduction and by CUB's.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput": before writing a primitive,
look into the library.  The kernel is that of the family ``reduce_sum``; CUB is the one that CuPy was built with.
"""

import functools

import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/reduce_sum.cu"
BLOCK = 256
ELEMENTS_OF_A_BLOCK = 64 * BLOCK


class OwnSum:
    """Two launches: a partial sum per block, and the sum of those."""

    def __init__(self, kernel, gpu, given):
        partial = gpu.empty(blocks_over(given.size, ELEMENTS_OF_A_BLOCK))
        self.sum = gpu.empty(1)
        steps = ((given, partial, given.size), (partial, self.sum, partial.size))
        self._launches = [kernel.launch(grid=(args[1].size,), block=(BLOCK,), args=args) for args in steps]

    def __call__(self):
        for launch in self._launches:
            launch()


class CubSum:
    """``cub::DeviceReduce``, called for itself: ``sum`` of CuPy might take another way."""

    def __init__(self, given):
        from cupy.cuda import cub

        self._reduce = functools.partial(cub.device_reduce, given, cub.CUPY_CUB_SUM, tuple(range(given.ndim)), ())
        self.sum = None

    def __call__(self):
        self.sum = self._reduce()


def skip_without_cub(gpu):
    if not gpu.available:
        pytest.skip("CUB is called through CuPy, on a GPU")
    from cupy.cuda import cub

    if not cub.available:
        pytest.skip("this CuPy was built without CUB")


def sums_by_both(cuda_kernel, gpu, given):
    return OwnSum(cuda_kernel(SOURCE, "reduce_grid_stride"), gpu, given), CubSum(given)


@pytest.mark.parametrize("n", [1, 255, 3 * ELEMENTS_OF_A_BLOCK + 2, 1_000_003])
def test_both_sums_are_right(cuda_kernel, gpu, n):
    skip_without_cub(gpu)
    given = gpu.random(n, seed=450)
    expected = gpu.to_host(given).astype(np.float64).sum()
    for work in sums_by_both(cuda_kernel, gpu, given):
        work()
        assert float(gpu.to_host(work.sum).item()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.gpuperf(budget_s=0.3)
def test_own_sum_beside_cub(cuda_kernel, gpu, gpuperf, claim):
    skip_without_cub(gpu)
    given = gpu.random(2**28, seed=451)
    expected = functools.cache(lambda: float(given.sum(dtype="float64")))

    def measure(work, name):
        def check():
            assert float(gpu.to_host(work.sum).item()) == pytest.approx(expected(), rel=1e-5)

        return gpuperf(work, name=name, bytes=given.nbytes, flops=given.size, check=check)

    own, by_cub = (
        measure(work, name) for work, name in zip(sums_by_both(cuda_kernel, gpu, given), ("own", "CUB"), strict=True)
    )
    claim("CUB-01", own.time_ns / by_cub.time_ns)
    claim("CUB-02", by_cub.bandwidth / gpu.copy_bandwidth)
