"""Multiplying matrices: reuse through shared memory.

From the "Optimization" chapter of a CUDA course.
"""

import counters
import numpy as np
import ptx_counts
import pytest

SOURCE = "kernels/matmul.cu"
WIDTHS = {"matmul_naive": 32, "matmul_tiled16": 16, "matmul_tiled32": 32, "matmul_past_l1": 32}
"""Width of a block; of a tile as well, where there are tiles."""
INTENSITIES = {"matmul_naive": 0.25, "matmul_tiled16": 4, "matmul_tiled32": 8, "matmul_past_l1": 0.25}
"""FLOP per byte loaded from global memory."""


def launch_over(kernel, name, a, b, c):
    n, width = len(a), WIDTHS[name]
    return kernel.launch(grid=(n // width, n // width), block=(width, width), args=(a, b, c, n))


def intensity(kernel, arch):
    """FLOP per byte of global loads, from the instructions of a kernel whose loops have both."""
    counts = ptx_counts.instructions(kernel, arch)
    multiply_adds = sum(count for name, count in counts.items() if name.startswith("fma."))
    loads = sum(count for name, count in counts.items() if name.startswith("ld.global."))
    return 2 * multiply_adds / (4 * loads)


@pytest.mark.parametrize("name", WIDTHS)
def test_product_is_right(cuda_kernel, gpu, name):
    n = 96
    a = gpu.random((n, n), seed=240, low=-1, high=1)
    b = gpu.random((n, n), seed=241, low=-1, high=1)
    c = gpu.full((n, n), float("nan"))
    launch_over(cuda_kernel(SOURCE, name), name, a, b, c)()
    expected = gpu.to_host(a).astype(np.float64) @ gpu.to_host(b).astype(np.float64)
    np.testing.assert_allclose(gpu.to_host(c), expected, rtol=0, atol=1e-6 * n)


@pytest.mark.gpuperf(budget_s=1.5)
def test_product_of_large_matrices(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in WIDTHS}
    found = {name: {intensity(kernel, arch) for arch in kernel.profiles} for name, kernel in kernels.items()}
    assert found == {name: {expected} for name, expected in INTENSITIES.items()}
    claim("MM-09", *found["matmul_naive"])
    claim("MM-05", *found["matmul_tiled16"])
    claim.not_comparable("MM-03")
    for name, kernel in kernels.items():
        tiles = 2 if "tiled" in name else 0
        for profile in kernel.profiles.values():
            assert profile.shared_bytes == tiles * WIDTHS[name] ** 2 * 4
            assert profile.opcodes.get("barrier", 0) == tiles
            assert profile.stack_bytes == 0

    n = 2304  # the smallest whose matrices exceed the L2 of an H200
    a = gpu.random((n, n), seed=242, low=-1, high=1)
    b = gpu.random((n, n), seed=243, low=-1, high=1)

    def measure(name):
        c = gpu.full((n, n), float("nan"))

        def check():  # Freivalds: C x = A (B x) for a random x; one missing product of 2304 shows
            x = gpu.random(n, seed=244, low=-1, high=1).astype("float64")
            expected = times(a, times(b, x))
            gpu.assert_allclose(times(c, x), expected, rtol=0, atol=0.02)

        launch = launch_over(kernels[name], name, a, b, c)
        return gpuperf(launch, bytes=3 * a.nbytes, flops=2 * n**3, check=check)

    naive, tiled16, tiled32, past_l1 = (measure(name) for name in kernels)
    tensor = measure_tensor_cores(cuda_kernel, gpu, gpuperf, kernels["matmul_naive"], a, b)

    def fewer_loads(tiled):
        """The factor does not depend on the size of the matrices."""
        return counters.memory_instructions(naive, "global", "ld") / counters.memory_instructions(tiled, "global", "ld")

    def fewer_loads_that_the_l2_does_not_see():
        assert counters.l2_sectors(naive, "ld") < counters.l2_sectors(tiled16, "ld")  # the L1 has what is loaded again
        return fewer_loads(tiled16)

    claim("MM-01", lambda: fewer_loads(tiled32))
    claim("MM-02", fewer_loads_that_the_l2_does_not_see)
    claim("MM-06", naive.time_ns / tensor.time_ns)
    # The control: take the L1 away, which does most of a tile's work already, and tiles are worth what is claimed.
    without_l1 = past_l1.time_ns / tiled32.time_ns
    claim("MM-07", naive.time_ns / tiled32.time_ns, because=[lambda: counters.l1_hit_rate(naive), without_l1])
    claim("MM-08", tiled16.time_ns / tiled32.time_ns)
    # By the data sheet 13.9 FLOP per byte; a copy reaches 85 % of that bandwidth at least.
    assert gpu.slug != "nvidia-h200" or 13.7 <= gpu.fma_throughput / gpu.copy_bandwidth <= 16.7
    assert tiled32.flops < 0.25 * gpu.fma_throughput
    # Even if every load of a tile went to DRAM, it would take a quarter of what a copy moves.
    loaded = tiled32.flops / INTENSITIES["matmul_tiled32"]
    claim("MM-04", loaded / gpu.copy_bandwidth, because=[lambda: counters.l1_throughput(tiled32)])


def measure_tensor_cores(cuda_kernel, gpu, gpuperf, naive, a, b):
    """The product of the matrices rounded to half precision; checked by the naive kernel."""
    n = len(a)
    rounded, by_columns = a.astype("float16"), b.astype("float16").T.copy()
    c, expected = gpu.full((n, n), float("nan")), gpu.empty((n, n))

    def check():
        singles = rounded.astype("float32"), by_columns.T.astype("float32").copy()
        launch_over(naive, "matmul_naive", *singles, expected)()
        gpu.assert_allclose(c, expected, rtol=0, atol=5e-3)

    kernel = cuda_kernel("kernels/hmma_1688.cu", "matmul_mma")
    launch = kernel.launch(grid=(n // 128, n // 128), block=256, args=(rounded, by_columns, c, n))
    return gpuperf(launch, bytes=2 * rounded.nbytes + c.nbytes, flops=2 * n**3, check=check)


def times(matrix, vector):
    """Matrix times vector in float64, by plain sums."""
    return (matrix.astype("float64") * vector).sum(axis=1)
