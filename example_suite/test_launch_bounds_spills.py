"""``__launch_bounds__``: what the right bound costs, and what too tight a one does.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/launch_bounds_spills.cu"
CELLS = 56
BLOCK = 256
SHARE = 0.25
"""Of the difference to a neighbour that flows in a step."""
BOUNDS = (None, (256, 3), (256, 4), (1024, 1), (256, 6), (256, 8))
"""Threads per block at most, and blocks per SM at least."""
FREE, TIGHT = (256, 3), (256, 8)


def name_of(bounds):
    return "no bounds" if bounds is None else "bounds of {}, {}".format(*bounds)


def kernel_of(cuda_kernel, bounds):
    if bounds is None:
        return cuda_kernel(SOURCE, "heat_unbounded")
    return cuda_kernel(SOURCE, "heat", name_expression="heat<{}, {}>".format(*bounds))


def launch_over(kernel, given, out, steps):
    """``given`` has blocks, cells and threads."""
    return kernel.launch(grid=(len(given),), block=(BLOCK,), args=(given, out, SHARE, steps))


def after(steps, given):
    """The rods in float64, for NumPy and CuPy arrays; the ends are cold."""
    cells = given.astype("float64")
    for _ in range(steps):
        flown = (1 - 2 * SHARE) * cells
        flown[:, 1:] += SHARE * cells[:, :-1]
        flown[:, :-1] += SHARE * cells[:, 1:]
        cells = flown
    return cells


@pytest.mark.parametrize("bounds", BOUNDS, ids=name_of)
def test_heat_flows_as_it_should(cuda_kernel, gpu, bounds):
    given = np.random.default_rng(430).uniform(0.5, 1.5, (3, CELLS, BLOCK)).astype(np.float32)
    out = gpu.zeros(given.shape)
    launch_over(kernel_of(cuda_kernel, bounds), gpu.array(given), out, 5)()
    np.testing.assert_allclose(gpu.to_host(out), after(5, given), rtol=2e-6)


def test_what_a_bound_takes(cuda_kernel, gpu, claim):
    given = gpu.empty((1, CELLS, BLOCK))
    launches = {bounds: launch_over(kernel_of(cuda_kernel, bounds), given, given, 1) for bounds in BOUNDS}
    profiles = {bounds: launch.kernel.profiles for bounds, launch in launches.items()}

    def spilled(bounds, arch):
        return profiles[bounds][arch].spill_store_bytes + profiles[bounds][arch].spill_load_bytes

    archs = profiles[None].keys()
    for arch in archs:
        assert spilled(None, arch) == 0
        assert profiles[256, 4][arch].registers == profiles[1024, 1][arch].registers == 64
    claim("LB-01", max(spilled(FREE, arch) for arch in archs))
    claim("LB-05", max(abs(spilled((1024, 1), arch) - spilled((256, 4), arch)) for arch in archs))
    for arch in archs & {"sm_80", "sm_90"}:  # where 8 such blocks fit; elsewhere the compiler ignores the wish
        assert profiles[TIGHT][arch].registers == 32
    if "sm_90" in archs:
        claim("LB-02", spilled(TIGHT, "sm_90"))
        free, tight = (launches[bounds].occupancy["sm_90"].fraction for bounds in (FREE, TIGHT))
        claim("LB-06", tight / free)
        claim("LB-07", free / tight)


@pytest.mark.gpuperf(budget_s=0.6)
def test_bounds_from_free_to_tight(cuda_kernel, gpu, gpuperf, claim):
    steps = 64
    given = gpu.random((1024, CELLS, BLOCK), seed=431, low=0.5, high=1.5)

    @functools.cache
    def expected():
        return after(steps, given)

    def measure(bounds):
        out = gpu.zeros(given.shape)
        return gpuperf(
            launch_over(kernel_of(cuda_kernel, bounds), given, out, steps),
            name=name_of(bounds),
            bytes=2 * given.nbytes,
            flops=4 * steps * given.size,
            check=lambda: gpu.assert_allclose(out, expected(), rtol=1e-5),
        )

    runs = {bounds: measure(bounds) for bounds in BOUNDS}
    time = {bounds: run.time_ns for bounds, run in runs.items()}
    claim("LB-03", time[TIGHT] / time[FREE])
    claim("LB-04", time[FREE] / time[None])
    claim("LB-08", time[1024, 1] / time[FREE])
