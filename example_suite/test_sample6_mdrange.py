"""The shape of a block, and how many of them there are.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 6).
"""

import counters
import numpy as np
import pytest
from launching import blocks_over
from stencils import five_point_mean

from pytest_gpuperf.compile.cubin.occupancy import occupancy_of

SOURCE = "kernels/sample6_mdrange.cu"
BLOCKS = {"mdrange": (16, 2), "b32x8": (32, 8), "b64x4": (64, 4), "linear": (256,)}
ON_ADA = {32: 0.50, 64: 1.00, 256: 1.00, 544: 0.71, 768: 1.00, 800: 0.52, 1024: 0.67}
"""Block size: occupancy of the article's GPU, which holds 48 warps and 24 blocks per SM."""


def compile_both(cuda_kernel):
    return {1: cuda_kernel(SOURCE, "blur_linear"), 2: cuda_kernel(SOURCE, "blur_2d")}


def launch_over(kernels, block, out, image):
    """With the kernel that has as many dimensions as the block."""
    side = image.shape[0]
    inner = side - 2
    points = (inner**2,) if len(block) == 1 else (inner, inner)
    grid = tuple(blocks_over(length, threads) for length, threads in zip(points, block, strict=True))
    return kernels[len(block)].launch(grid=grid, block=block, args=(out, image, side))


def test_every_interior_point_is_blurred(cuda_kernel, gpu):
    side = 259
    given = np.random.default_rng(340).uniform(0.5, 1.5, (side, side)).astype(np.float32)
    expected = np.zeros((side, side))
    expected[1:-1, 1:-1] = five_point_mean(given.astype(np.float64))
    kernels = compile_both(cuda_kernel)
    for name, block in BLOCKS.items():
        out = gpu.zeros((side, side))
        launch_over(kernels, block, out, gpu.array(given))()
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-6, err_msg=name)


def test_occupancy_by_block_size_on_the_articles_gpu(claim):
    found = {size: occupancy_of(22, 0, size, "sm_89").fraction for size in ON_ADA}
    claim("S6-06", max(abs(found[size] - ON_ADA[size]) for size in ON_ADA), at_most=0.005)


@pytest.mark.gpuperf(budget_s=0.6)
def test_blur_by_block_shape(cuda_kernel, gpu, gpuperf, claim):
    kernels = compile_both(cuda_kernel)
    two, one = kernels[2].profiles, kernels[1].profiles
    more = max(two[arch].registers - one[arch].registers for arch in two)
    reason = "the eight registers more were the library's; in plain CUDA two dimensions cost none"
    claim.refuted("S6-02", more, holds=more >= 8, reason=reason)

    side = 2**14
    image = gpu.random((side, side), seed=341, low=0.5, high=1.5)
    out = gpu.zeros(image.shape)
    launches = {name: launch_over(kernels, block, out, image) for name, block in BLOCKS.items()}
    if "sm_90" in two:
        fractions = {name: launch.occupancy["sm_90"].fraction for name, launch in launches.items()}
        assert fractions["b32x8"] == fractions["b64x4"] == fractions["linear"] == 1
        claim("S6-03", fractions["mdrange"], equals=0.5)

    def check():
        for j in range(0, side - 2, 2048):  # in bands, for the memory that float64 takes
            rows = slice(j, min(j + 2050, side))
            gpu.assert_allclose(out[rows][1:-1, 1:-1], five_point_mean(image[rows].astype("float64")), rtol=1e-6)
        out.fill(0)  # what the next block shape does not write is seen

    runs = {
        name: gpuperf(launch, name=name, bytes=2 * image.nbytes, flops=5 * (side - 2) ** 2, check=check)
        for name, launch in launches.items()
    }

    def sectors_of_two_pieces():
        assert 4 <= counters.sectors_per_request(runs["linear"], "ld") <= 5
        return counters.sectors_per_request(runs["mdrange"], "ld")

    claim.counter("S6-05", sectors_of_two_pieces, between=(4, 6))
    time = {name: run.time_ns for name, run in runs.items()}

    claim("S6-01", time["mdrange"] / time["linear"], at_least=1.5)
    assert max(time["b32x8"], time["b64x4"]) <= 1.3 * time["linear"]
    reach = runs["linear"].bandwidth / gpu.copy_bandwidth
    reason = (
        "Little's law: a thread has 4 bytes of its own to load and 4 to store, and its place is taken again after "
        "about a microsecond; all resident threads of an H200 together then move half of what a copy does with 64 "
        "bytes per thread"
    )
    claim.refuted("S6-04", reach, holds=reach >= 0.8, reason=reason)
