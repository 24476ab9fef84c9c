"""A matrix product that is bound by the tensor cores, as far as these are fed without waiting.

From the "Optimization" chapter of a CUDA course, carried on to Hopper's wgmma and copy engine.
The kernels include kernels/bulk_copies.cuh.
"""

import numpy as np
import pytest

SOURCE, ARCH = "kernels/matmul_wgmma.cu", "sm_90a"
ROWS, COLUMNS, SLAB = 128, 256, 64
"""Of a block's tile of C, and of the sum that it goes through at a time."""
N = 4096
"""The smallest power of two whose three matrices exceed the L2 of an H200."""


def packed(halves, panel):
    """In panels of so many rows, and in these 8 columns after 8 columns; as the 32-bit words that a kernel loads."""
    rows, k = halves.shape
    return halves.reshape(rows // panel, panel, k // 8, 8).transpose(0, 2, 1, 3).copy().view("uint32")


def measure_products(cuda_kernel, gpu, gpuperf, cases):
    """Measures C = A B^T by every ``matmul<instruction, stages>``; returns the runs, and A and B in bfloat16."""
    kernels = {name: cuda_kernel(SOURCE, "matmul", name_expression=f"matmul<{of}>", arch=ARCH) for name, of in cases}
    if gpu.available and gpu.arch != "sm_90":  # behind the kernels, so that their machine code is judged everywhere
        pytest.skip(f"wgmma runs on sm_90 alone, and this GPU is {gpu.arch}")
    # Of -1, 0 and 1: all sums are exact, and draw less power than those of fractions, by which an H200 throttles.
    numbers = [gpu.random((N, N), "int8", seed=seed, low=-1, high=2).astype("float32") for seed in (252, 253)]
    a, b = (floats.view("uint16")[:, 1::2].copy() for floats in numbers)

    def measure(name, of):
        c = gpu.empty((N, N))

        def check():  # Freivalds: C x = A (B^T x) for a random x, exactly; one missing product shows
            x = gpu.random(N, "int8", seed=254, low=-9, high=10).astype("float64")
            gpu.assert_equal((c * x).sum(axis=1), (numbers[0] * (numbers[1] * x[:, None]).sum(axis=0)).sum(axis=1))

        args = (packed(a, ROWS), packed(b, COLUMNS), c, N, N, N)
        slabs = 2 * (ROWS + COLUMNS) * SLAB * int(of[-1])
        launch = kernels[name].launch(grid=gpu.sm_count, block=288, args=args, shared_bytes=slabs)
        return gpuperf(launch, name=name, flops=2 * N**3, bytes=8 * N**2, check=check)

    return [measure(*case) for case in cases], a, b


@pytest.mark.gpuperf(budget_s=1)  # the power that such products draw makes their times wander
def test_product_by_wgmma(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel(SOURCE, "multiply_only", arch=ARCH)
    cases = [("wgmma", "Wgmma, 4"), ("mma.sync", "MmaSync, 4")]
    (fast, slow), a, b = measure_products(cuda_kernel, gpu, gpuperf, cases)
    # The ceiling: tensor cores that multiply the same slabs over and over, with nothing to wait for.
    a, b, rounds = a[:ROWS, :SLAB].copy(), b[:COLUMNS, :SLAB].copy(), 256
    d = gpu.empty((gpu.sm_count, ROWS, COLUMNS))

    def check():
        first, second = ((gpu.to_host(each).astype(np.uint32) << 16).view(np.float32) for each in (a, b))
        np.testing.assert_array_equal(gpu.to_host(d), np.broadcast_to(rounds * (first @ second.T), d.shape))

    args = (packed(a, ROWS), packed(b, COLUMNS), d, rounds)
    launch = kernel.launch(grid=gpu.sm_count, block=288, args=args, shared_bytes=a.nbytes + b.nbytes)
    ceiling = gpuperf(launch, flops=2 * ROWS * COLUMNS * SLAB * rounds * gpu.sm_count, check=check)
    assert slow.flops < fast.flops < ceiling.flops


@pytest.mark.gpuperf(budget_s=1)
def test_product_by_stages(cuda_kernel, gpu, gpuperf):
    cases = [("1 stage", "Wgmma, 1"), ("2 stages", "Wgmma, 2"), ("4 stages", "Wgmma, 4")]
    (one, two, four), _, _ = measure_products(cuda_kernel, gpu, gpuperf, cases)
    assert four.time_ns < two.time_ns < one.time_ns
