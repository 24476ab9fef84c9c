"""Adding up an array, by the suite's fastest reduction and by CUB's.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput": before writing a primitive,
look into the library.  The kernel is that of the family ``reduce_sum``; CUB is the one that CuPy was built with.
"""

import functools

import pytest

SOURCE = "kernels/reduce_sum.cu"
BLOCK = 256
ELEMENTS_OF_A_BLOCK = 64 * BLOCK


@pytest.mark.gpuperf(budget_s=0.3)
def test_own_sum_beside_cub(cuda_kernel, gpu, gpuperf):
    given, total = gpu.random(2**28, seed=451), gpu.empty(1)
    partial = gpu.empty(-(-given.size // ELEMENTS_OF_A_BLOCK))
    expected = functools.cache(lambda: float(given.sum(dtype="float64")))
    kernel = cuda_kernel(SOURCE, "reduce_grid_stride")
    first, second = (
        kernel.launch(grid=(out.size,), block=(BLOCK,), args=(values, out, values.size))
        for values, out in ((given, partial), (partial, total))
    )

    def measure(work, name):
        def check():
            assert float(gpu.to_host(found[name]).item()) == pytest.approx(expected(), rel=1e-5)

        return gpuperf(work, name=name, bytes=given.nbytes, flops=given.size, check=check)

    def own():
        first()
        second()
        found["own"] = total

    def by_cub():  # CuPy's `sum` might take another way
        found["CUB"] = cub.device_reduce(given, cub.CUPY_CUB_SUM, (0,), ())

    found = {}
    one = measure(own, "own")
    gpu.synchronize()
    cub = pytest.importorskip("cupy.cuda.cub")
    library = measure(by_cub, "CUB")

    assert library.time_ns <= 1.1 * one.time_ns
