"""A branch that is never taken still costs registers.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 7).
"""

import counters
import numpy as np
import pytest
from launching import blocks_over
from stencils import five_point_mean

from pytest_gpuperf.compile.machine_code.occupancy import occupancy_of

SOURCE = "kernels/sample7_template_branch.cu"
BLOCK = 128
HOG = 128
"""Values that the expensive option keeps in registers."""
LIGHT = 8
"""So many that every thread that an SM can hold still has its registers."""
HOG_OPTIONS: tuple[str, ...] = ()
"""Compiler options of the timed kernel with the branch; with ("-maxrregcount=32",) it spills, and the gate says so."""


def at_run_time(cuda_kernel, length=HOG, options=()):
    return cuda_kernel(SOURCE, "blur_at_run_time", name_expression=f"blur_at_run_time<{length}>", options=options)


def at_compile_time(cuda_kernel, expensive):
    option = "true" if expensive else "false"
    return cuda_kernel(SOURCE, "blur_at_compile_time", name_expression=f"blur_at_compile_time<{option}, {HOG}>")


def grid_over_interior(side):
    return (blocks_over((side - 2) ** 2, BLOCK),)


def expensive_option(image):
    """The forward and the backward pass of every interior point, in float64."""
    side = image.shape[0]
    middle = image[1:-1, 1:-1]
    i, j = np.meshgrid(np.arange(1, side - 1), np.arange(1, side - 1))
    values = [middle + image[j, (i + j + k) % side] for k in range(HOG)]
    s = np.zeros_like(middle)
    for value in values:
        s = s * 0.5 + value
    r = s
    for value in reversed(values):
        r = r * 0.25 + value * s
    return r


def test_blur_and_option_are_right(cuda_kernel, gpu):
    side = 66
    given = np.random.default_rng(300).uniform(0.5, 1.5, (side, side)).astype(np.float32)
    exact = given.astype(np.float64)
    branch, template, with_option = (
        at_run_time(cuda_kernel),
        *(at_compile_time(cuda_kernel, on) for on in (False, True)),
    )
    image = gpu.array(given)
    for kernel, option, expensive in (
        (branch, (0,), False), (template, (), False), (branch, (1,), True), (with_option, (), True),
    ):  # fmt: skip
        out = gpu.zeros(image.shape)
        kernel.launch(grid=grid_over_interior(side), block=(BLOCK,), args=(out, image, side, *option))()
        expected = np.zeros_like(exact)
        expected[1:-1, 1:-1] = five_point_mean(exact) + (expensive_option(exact) if expensive else 0)
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-4 if expensive else 1e-6, err_msg=kernel.name)


def test_registers_of_the_branch(cuda_kernel, gpu, claim):
    without = at_compile_time(cuda_kernel, False)
    hogs = {length: at_run_time(cuda_kernel, length) for length in (64, 96, HOG, 160)}
    kernels = [without, *hogs.values()]
    spills = [p.spill_store_bytes + p.spill_load_bytes for kernel in kernels for p in kernel.profiles.values()]
    claim("S7-08", max(spills))

    archs = without.profiles
    ratio = min(hogs[HOG].profiles[arch].registers / without.profiles[arch].registers for arch in archs)
    claim("S7-01", ratio)
    claim("S7-09", 100 * occupancy_of(198, 0, BLOCK, "sm_89").fraction)

    image = gpu.empty((66, 66))
    out = gpu.empty_like(image)

    def occupancy(kernel, block=BLOCK):
        args = (out, image, 66) if kernel is without else (out, image, 66, 0)
        return {
            arch: found.fraction for arch, found in kernel.launch(grid=(1,), block=block, args=args).occupancy.items()
        }

    if "sm_90" in archs:
        steps = [occupancy(kernel)["sm_90"] for kernel in kernels]
        assert steps == [1.0, 0.375, 0.25, 0.1875, 0.125]
        claim("S7-02", 100 * steps[3])
        assert occupancy(hogs[HOG], block=256)["sm_90"] == 0.125


def test_blur_of_an_image(cuda_kernel, gpu, gpuperf, claim):
    branch = at_run_time(cuda_kernel, options=HOG_OPTIONS)
    light = at_run_time(cuda_kernel, LIGHT)
    template = at_compile_time(cuda_kernel, False)

    side = 2**14
    image = gpu.random((side, side), seed=301, low=0.5, high=1.5)

    def measure(name, kernel, *option):
        out = gpu.zeros(image.shape)

        def check():
            for j in range(0, side - 2, 2048):  # in bands, for the memory that float64 takes
                rows = slice(j, min(j + 2050, side))
                expected = five_point_mean(image[rows].astype("float64"))
                gpu.assert_allclose(out[rows][1:-1, 1:-1], expected, rtol=1e-6)

        launch = kernel.launch(grid=grid_over_interior(side), block=(BLOCK,), args=(out, image, side, *option))
        return gpuperf(launch, name=name, bytes=2 * image.nbytes, flops=5 * (side - 2) ** 2, check=check)

    with_branch = measure("branch", branch, 0)
    without = measure("template", template)
    light_branch = measure("light branch", light, 0)
    claim.not_comparable("S7-05")
    claim(
        "S7-10",
        lambda: counters.achieved_occupancy(with_branch),
        because=[lambda: counters.theoretical_occupancy(with_branch)],
    )
    claim(
        "S7-03",
        lambda: counters.achieved_occupancy(without) / counters.achieved_occupancy(with_branch),
        because=[lambda: grid_over_interior(side)[0] / counters.cycles(without)],
    )
    claim("S7-06", lambda: counters.memory_throughput(with_branch))
    claim("S7-11", lambda: counters.sm_throughput(with_branch))
    claim("S7-12", lambda: counters.stall_share(with_branch, "long_scoreboard"))

    claim("S7-04", with_branch.time_ns / without.time_ns)
    # The control: the branch is still there, and what is behind it needs no more registers than there are.
    assert light_branch.time_ns == pytest.approx(without.time_ns, rel=0.05)

    reach = without.bandwidth / gpu.copy_bandwidth
    claim("S7-07", reach, because=[grid_over_interior(side)[0] / without.time_ns])
