"""The shape of a block, and how many of them there are.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 6).
"""

import numpy as np
import pytest

SOURCE = "kernels/sample6_mdrange.cu"
BLOCKS = {"mdrange": (16, 2), "b16x16": (16, 16), "b32x8": (32, 8), "b64x4": (64, 4), "linear": (256,)}
HALF_AN_SM = 47 * 1024
"""Bytes of shared memory that leave an SM of an H200 four blocks of 256 threads, half of what it holds."""


def launch_over(cuda_kernel, block, out, image, shared_bytes=0):
    side = len(image)
    points = ((side - 2) ** 2,) if len(block) == 1 else (side - 2, side - 2)
    grid = [-(-length // threads) for length, threads in zip(points, block, strict=True)]
    kernel = cuda_kernel(SOURCE, "blur_linear" if len(block) == 1 else "blur_2d")
    return kernel.launch(grid=grid, block=block, args=(out, image, side), shared_bytes=shared_bytes)


def five_point_mean(image):
    """Of the interior points, in float64."""
    image = image.astype("float64")
    return (image[1:-1, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:] + image[:-2, 1:-1] + image[2:, 1:-1]) / 5


def test_every_interior_point_is_blurred(cuda_kernel, gpu):
    given = np.random.default_rng(340).uniform(0.5, 1.5, (259, 259)).astype(np.float32)
    out = gpu.empty(given.shape)
    launches = {name: launch_over(cuda_kernel, block, out, gpu.array(given)) for name, block in BLOCKS.items()}
    for name, launch in launches.items():
        out.fill(0)
        launch()
        np.testing.assert_allclose(gpu.to_host(out), np.pad(five_point_mean(given), 1), rtol=1e-6, err_msg=name)


@pytest.mark.gpuperf(budget_s=0.6)
def test_blur_by_block_shape(cuda_kernel, gpu, gpuperf):
    side = 2**14
    image = gpu.random((side, side), seed=341, low=0.5, high=1.5)
    out = gpu.zeros(image.shape)

    def check():
        for j in range(0, side - 2, 2048):  # in bands, for the memory that float64 takes
            rows = slice(j, min(j + 2050, side))
            gpu.assert_allclose(out[rows][1:-1, 1:-1], five_point_mean(image[rows]), rtol=1e-6)
        out.fill(0)  # what the next block shape does not write is seen

    def measure(name, block, shared_bytes=0):
        launch = launch_over(cuda_kernel, block, out, image, shared_bytes)
        return gpuperf(launch, name=name, bytes=2 * image.nbytes, flops=5 * (side - 2) ** 2, check=check)

    runs = {name: measure(name, block) for name, block in BLOCKS.items()}
    half_full = measure("half_full", BLOCKS["linear"], HALF_AN_SM)
    assert max(runs["b32x8"].time_ns, runs["b64x4"].time_ns) <= 1.1 * runs["linear"].time_ns
    assert runs["linear"].time_ns < half_full.time_ns < runs["mdrange"].time_ns
