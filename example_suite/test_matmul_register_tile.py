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
DEPTH = 16
"""Of a slice."""
UNUSED_BYTES = 96 * 1024
"""Of shared memory: with it two blocks fit an SM of an H200."""


def kernel_of(cuda_kernel, width):
    return cuda_kernel(SOURCE, "register_tile", name_expression=f"register_tile<{width}>")


def launch_over(kernel, width, a, b, c, unused_bytes=0):
    n = len(a)
    blocks = n // (THREADS * width)
    return kernel.launch(grid=(blocks, blocks), block=(THREADS, THREADS), args=(a, b, c, n), shared_bytes=unused_bytes)


@pytest.mark.parametrize("width", WIDTHS)
def test_product_is_right(cuda_kernel, gpu, width):
    n = 256
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (420, 421))
    c = gpu.full((n, n), float("nan"))
    launch_over(kernel_of(cuda_kernel, width), width, a, b, c)()
    expected = gpu.to_host(a).astype(np.float64) @ gpu.to_host(b).astype(np.float64)
    np.testing.assert_allclose(gpu.to_host(c), expected, rtol=0, atol=1e-6 * n)


def test_what_a_tile_takes_and_saves(cuda_kernel, gpu, claim):
    a = gpu.empty((256, 256))
    kernels = {width: kernel_of(cuda_kernel, width) for width in WIDTHS}
    for width, kernel in kernels.items():
        for arch, profile in kernel.profiles.items():
            assert profile.spill_store_bytes == 0 or arch != "sm_90"  # 128 registers are scarce for 64 elements
            assert profile.shared_bytes == 4 * DEPTH * (2 * THREADS * width + 4)
            assert profile.opcodes["barrier"] == 2
            multiply_adds = DEPTH * width**2
            loads_of_four = 2 * DEPTH * width // min(width, 4)
            assert profile.opcodes["fp32"] == multiply_adds
            assert profile.opcodes["shared_load"] == loads_of_four
    first, last = (
        min(profile.opcodes["fp32"] / profile.opcodes["shared_load"] for profile in kernels[width].profiles.values())
        for width in (1, 8)
    )
    claim("MT-06", last / first)
    if "sm_90" in kernels[1].profiles:
        resident = {width: launch_over(kernels[width], width, a, a, a).occupancy["sm_90"] for width in WIDTHS}
        few = launch_over(kernels[1], 1, a, a, a, UNUSED_BYTES).occupancy["sm_90"]
        assert [found.blocks_per_sm for found in resident.values()] == [8, 4, 3, 2]
        assert few.blocks_per_sm == resident[8].blocks_per_sm
        claim("MT-02", 100 * resident[8].fraction)
        claim("MT-03", 100 * resident[1].fraction)


@pytest.mark.gpuperf(budget_s=1.0)
def test_product_of_large_matrices(cuda_kernel, gpu, gpuperf, claim):
    n = 2048  # the last tile makes 256 blocks, for the 264 that an H200 holds
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (422, 423))

    def measure(width, unused_bytes=0, name="{0} x {0} per thread"):
        c = gpu.full((n, n), float("nan"))

        def check():  # Freivalds: C x = A (B x) for a random x; one missing product of 2048 shows
            x = gpu.random(n, seed=424, low=-1, high=1).astype("float64")
            gpu.assert_allclose(times(c, x), times(a, times(b, x)), rtol=0, atol=0.02)

        launch = launch_over(kernel_of(cuda_kernel, width), width, a, b, c, unused_bytes)
        return gpuperf(launch, name=name.format(width), bytes=3 * a.nbytes, flops=2 * n**3, check=check)

    runs = {width: measure(width) for width in WIDTHS}
    few_warps = measure(1, UNUSED_BYTES, "{0} x {0} per thread, 16 warps per SM")
    time = {width: run.time_ns for width, run in runs.items()}
    claim("MT-01", time[1] / time[8])
    claim("MT-04", runs[8].flops / gpu.fma_throughput)
    claim("MT-07", runs[1].flops / gpu.fma_throughput)
    # The control: as few warps without the tile of registers gain nothing.
    claim("MT-05", few_warps.time_ns / time[1])
    assert time[8] < time[4] < time[2] < time[1]


def times(matrix, vector):
    """Matrix times vector in float64, by plain sums."""
    return (matrix.astype("float64") * vector).sum(axis=1)
