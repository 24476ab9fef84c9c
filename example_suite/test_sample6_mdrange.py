"""The shape of a block, and how many of them there are.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 6).
"""

import counters
import numpy as np
import pytest
from launching import blocks_over
from stencils import five_point_mean

from pytest_gpuperf.compile.machine_code.occupancy import occupancy_of

SOURCE = "kernels/sample6_mdrange.cu"
BLOCKS = {"mdrange": (16, 2), "b16x16": (16, 16), "b32x8": (32, 8), "b64x4": (64, 4), "linear": (256,)}
HALF_AN_SM = 47 * 1024
"""Bytes of shared memory that leave an SM of an H200 four blocks of 256 threads, half of what it holds."""


def compile_both(cuda_kernel):
    return {1: cuda_kernel(SOURCE, "blur_linear"), 2: cuda_kernel(SOURCE, "blur_2d")}


def launch_over(kernels, block, out, image, shared_bytes=0):
    """With the kernel that has as many dimensions as the block."""
    side = image.shape[0]
    inner = side - 2
    points = (inner**2,) if len(block) == 1 else (inner, inner)
    grid = tuple(blocks_over(length, threads) for length, threads in zip(points, block, strict=True))
    args = (out, image, side)
    return kernels[len(block)].launch(grid=grid, block=block, args=args, shared_bytes=shared_bytes)


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
    """It holds 48 warps and 24 blocks per SM."""

    def percent(size):
        return 100 * occupancy_of(22, 0, size, "sm_89").fraction

    assert [percent(size) for size in (32, 64, 256, 768)] == [50, 100, 100, 100]
    claim("S6-06", percent(544))
    claim("S6-08", percent(800))
    claim("S6-09", percent(1024))


@pytest.mark.gpuperf(budget_s=0.6)
def test_blur_by_block_shape(cuda_kernel, gpu, gpuperf, claim):
    kernels = compile_both(cuda_kernel)
    claim.not_comparable("S6-02")
    two, one = kernels[2].profiles, kernels[1].profiles
    assert max(two[arch].registers - one[arch].registers for arch in two) <= 0

    side = 2**14
    image = gpu.random((side, side), seed=341, low=0.5, high=1.5)
    out = gpu.zeros(image.shape)
    launches = {name: launch_over(kernels, block, out, image) for name, block in BLOCKS.items()}
    launches["half_full"] = launch_over(kernels, BLOCKS["linear"], out, image, HALF_AN_SM)
    if "sm_90" in two:
        percent = {name: 100 * launch.occupancy["sm_90"].fraction for name, launch in launches.items()}
        assert percent["b16x16"] == percent["b32x8"] == percent["b64x4"] == 100
        assert percent["half_full"] == 50
        claim("S6-03", percent["mdrange"])
        claim("S6-07", percent["linear"])

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

    claim("S6-05", sectors_of_two_pieces)
    time = {name: run.time_ns for name, run in runs.items()}
    blocks = blocks_over(side - 2, 16) * blocks_over(side - 2, 2)
    claim("S6-01", time["mdrange"] / time["linear"], because=[blocks / time["mdrange"]])
    claim(
        "S6-04",
        runs["linear"].bandwidth / gpu.copy_bandwidth,
        because=[lambda: counters.stall_share(runs["linear"], "long_scoreboard")],
    )
    # Controls.  The dimensions stay, the blocks grow: the gain is there; even with a warp's two pieces of 16 floats.
    assert max(time["b32x8"], time["b64x4"]) <= 1.1 * time["linear"]
    assert time["b16x16"] <= 1.3 * time["linear"]
    # The blocks stay, and half of them may be there at a time.
    claim("S6-10", time["half_full"] / time["linear"])
