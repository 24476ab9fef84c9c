"""A matrix product that is bound by the tensor cores, as far as these are fed without waiting.

From the "Optimization" chapter of a CUDA course, carried on to Hopper's wgmma and copy engine.
"""

import cublas
import numpy as np
import pytest

SOURCE = "kernels/matmul_wgmma.cu"
ARCH = "sm_90a"
ROWS, COLUMNS, SLAB = 128, 256, 64
"""Of a block's tile of C, and of the sum that it goes through at a time."""
SLAB_BYTES = 2 * (ROWS + COLUMNS) * SLAB
THREADS = 288
TENSOR_PEAK = 989e12
"""FLOP per second of an H200 with dense bfloat16 inputs, by its data sheet."""
LARGE = 4096
"""The smallest power of two whose three matrices exceed the L2 of an H200."""
BUDGET_S = 1
"""The power that such products draw makes their times wander, by 1 % over a quarter of a second on an H100."""


def compiled(cuda_kernel, instruction, stages):
    return cuda_kernel(SOURCE, "matmul", name_expression=f"matmul<{instruction}, {stages}>", arch=ARCH)


def skip_on_other_gpus(gpu):
    """Behind the kernels, so that their machine code is judged everywhere."""
    if gpu.available and gpu.arch != "sm_90":
        pytest.skip(f"wgmma runs on sm_90 alone, and this GPU is {gpu.arch}")


def in_bfloat16(floats):
    """The upper halves of the floats: exact for whole numbers up to 256, else rounded towards zero."""
    return floats.view("uint16")[:, 1::2].copy()


def packed(halves, panel):
    """In panels of so many rows, and in these 8 columns after 8 columns; as the 32-bit words that a kernel loads."""
    rows, k = halves.shape
    return halves.reshape(rows // panel, panel, k // 8, 8).transpose(0, 2, 1, 3).copy().view("uint32")


def as_floats(halves):
    """On the host, in double precision."""
    return (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def launch_over(gpu, kernel, stages, a, b, c, blocks=None):
    """``a`` and ``b`` in bfloat16, row-major; C = A B^T."""
    (m, k), n = a.shape, len(b)
    args = (packed(a, ROWS), packed(b, COLUMNS), c, m, n, k)
    return kernel.launch(grid=blocks or gpu.sm_count, block=THREADS, args=args, shared_bytes=stages * SLAB_BYTES)


@pytest.mark.parametrize(("instruction", "stages"), [("Wgmma", 1), ("Wgmma", 2), ("Wgmma", 4), ("MmaSync", 4)])
def test_product_is_right(cuda_kernel, gpu, instruction, stages):
    """By blocks with several tiles, with one and with none; the sums go round the stages more than once."""
    kernel = compiled(cuda_kernel, instruction, stages)
    skip_on_other_gpus(gpu)
    m, n, k = 2 * ROWS, 3 * COLUMNS, 5 * SLAB
    a, b = (in_bfloat16(gpu.random((rows, k), seed=250 + rows, low=-1, high=1)) for rows in (m, n))
    c = gpu.full((m, n), float("nan"))
    launches = [launch_over(gpu, kernel, stages, a, b, c, blocks) for blocks in (2, 5, 9)]
    expected = as_floats(gpu.to_host(a)) @ as_floats(gpu.to_host(b)).T
    for launch in launches:
        c.fill(float("nan"))
        launch()
        np.testing.assert_allclose(gpu.to_host(c), expected, rtol=0, atol=1e-4)


def large_operands(gpu):
    """Of -1, 0 and 1: all sums are exact, and draw less power than those of fractions, by which an H200 throttles."""
    whole = (gpu.random((LARGE, LARGE), "int8", seed=seed, low=-1, high=2) for seed in (252, 253))
    return tuple(in_bfloat16(numbers.astype("float32")) for numbers in whole)


def compare_with_vectors(gpu, a, b, c):
    """Freivalds: C x = A (B^T x) for a random x, exactly; one missing product shows."""
    x = gpu.random(LARGE, "int8", seed=254, low=-9, high=10).astype("float64")
    gpu.assert_equal((c * x).sum(axis=1), (numbers(a) * (numbers(b) * x[:, None]).sum(axis=0)).sum(axis=1))


def numbers(halves):
    """On the device, in double precision."""
    return (halves.astype("uint32") << 16).view("float32").astype("float64")


def measured(gpu, gpuperf, kernel, stages, name, a, b):
    c = gpu.full((LARGE, LARGE), float("nan"))
    return gpuperf(
        launch_over(gpu, kernel, stages, a, b, c), name=name, flops=2 * LARGE**3, bytes=a.nbytes + b.nbytes + c.nbytes,
        check=lambda: compare_with_vectors(gpu, a, b, c),
    )  # fmt: skip


@pytest.mark.gpuperf(budget_s=BUDGET_S)
def test_product_by_wgmma(cuda_kernel, gpu, gpuperf, claim):
    by_wgmma, by_mma = (compiled(cuda_kernel, instruction, 4) for instruction in ("Wgmma", "MmaSync"))
    ceiling = cuda_kernel(SOURCE, "multiply_only", arch=ARCH)
    skip_on_other_gpus(gpu)
    assert {kernel.profile.spill_store_bytes for kernel in (by_wgmma, by_mma, ceiling)} == {0}
    # Of the 64 x 256 x 64 products of a slab for a warpgroup, and of the 64 x 64 x 16 of a warp.
    of_wgmma = 64 * 256 * SLAB / by_wgmma.profile.opcodes["tensor"]
    of_mma = 64 * 64 * 16 / by_mma.profile.opcodes["tensor"]
    claim("WG-02", of_wgmma / of_mma)

    a, b = large_operands(gpu)
    fast = measured(gpu, gpuperf, by_wgmma, 4, "wgmma", a, b)
    slow = measured(gpu, gpuperf, by_mma, 4, "mma.sync", a, b)
    at_most = measure_ceiling(gpu, gpuperf, ceiling, a, b)
    c = gpu.full((LARGE, LARGE), float("nan"))
    vendor = gpuperf(cublas.product(a, b, c), flops=2 * LARGE**3, check=lambda: compare_with_vectors(gpu, a, b, c))

    share = fast.flops / TENSOR_PEAK
    claim("WG-01", share / (fast.bandwidth / gpu.copy_bandwidth))
    claim("WG-03", share)
    claim("WG-04", fast.flops / at_most.flops)
    claim("WG-05", fast.flops / vendor.flops)
    claim("WG-06", slow.time_ns / fast.time_ns)


def measure_ceiling(gpu, gpuperf, kernel, a, b):
    """Tensor cores that multiply the same slabs over and over, with nothing to wait for."""
    rounds = 256
    a, b = a[:ROWS, :SLAB].copy(), b[:COLUMNS, :SLAB].copy()
    d = gpu.full((gpu.sm_count, ROWS, COLUMNS), float("nan"))

    def check():
        expected = rounds * (as_floats(gpu.to_host(a)) @ as_floats(gpu.to_host(b)).T)
        np.testing.assert_array_equal(gpu.to_host(d), np.broadcast_to(expected, d.shape))

    args = (packed(a, ROWS), packed(b, COLUMNS), d, rounds)
    launch = kernel.launch(grid=gpu.sm_count, block=THREADS, args=args, shared_bytes=SLAB_BYTES)
    return gpuperf(launch, flops=2 * ROWS * COLUMNS * SLAB * rounds * gpu.sm_count, check=check)


@pytest.mark.gpuperf(budget_s=BUDGET_S)
def test_product_by_stages(cuda_kernel, gpu, gpuperf, claim):
    kernels = {stages: compiled(cuda_kernel, "Wgmma", stages) for stages in (1, 2, 4)}
    skip_on_other_gpus(gpu)
    a, b = large_operands(gpu)
    one, two, four = (
        measured(gpu, gpuperf, kernel, stages, f"{stages} stage{'s' if stages > 1 else ''}", a, b)
        for stages, kernel in kernels.items()
    )
    claim("WG-07", one.time_ns / two.time_ns)
    claim("WG-08", one.time_ns / four.time_ns)
