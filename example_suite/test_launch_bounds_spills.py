"""Launch bounds: the right wish is free, the wrong one is paid in every step of a loop.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/launch_bounds_spills.cu"
BLOCK = 256
LENGTH = 40
FEW = 12
"""Values that fit into the registers of the boldest wish."""
BLOCKS = (1, 5, 6, 8)
"""Per SM, at the least."""


def flow(cuda_kernel, blocks, length=LENGTH):
    return cuda_kernel(SOURCE, "flow", name_expression=f"flow<{length}, {blocks}>")


def launch_over(kernel, given, out, steps):
    n = given.shape[1]
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=(given, out, n, steps))


def flowed(length, steps):
    """What so many steps do to a ring, as a matrix, float64."""
    step = 0.5 * (np.eye(length) + np.roll(np.eye(length), 1, axis=1))
    return np.linalg.matrix_power(step, steps)


def spill_bytes(profile):
    return profile.spill_store_bytes + profile.spill_load_bytes


@pytest.mark.parametrize("blocks", BLOCKS)
def test_rings_are_right(cuda_kernel, gpu, blocks):
    for steps in (0, 1, 7):
        check_rings(flow(cuda_kernel, blocks), gpu, LENGTH, steps)


@pytest.mark.parametrize("blocks", [1, 8])
def test_short_rings_are_right(cuda_kernel, gpu, blocks):
    check_rings(flow(cuda_kernel, blocks, FEW), gpu, FEW, steps=7)


def check_rings(kernel, gpu, length, steps):
    given = np.random.default_rng(710).uniform(0.5, 1.5, (length, 259)).astype(np.float32)
    out = gpu.empty(given.shape)
    launch_over(kernel, gpu.array(given), out, steps)()
    np.testing.assert_allclose(gpu.to_host(out), flowed(length, steps) @ given.astype(np.float64), rtol=2e-6)


def test_a_step_is_a_step():
    ring = np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(flowed(3, 1) @ ring, [1.5, 3, 2.5])


def test_what_a_wish_takes(cuda_kernel, gpu, claim):
    given, out = gpu.empty((LENGTH, 1024)), gpu.empty((LENGTH, 1024))
    kernels = {blocks: flow(cuda_kernel, blocks) for blocks in BLOCKS}
    archs = kernels[1].profiles.keys() & {"sm_80", "sm_90"}
    spilled = {blocks: {arch: spill_bytes(kernel.profiles[arch]) for arch in archs}
               for blocks, kernel in kernels.items()}  # fmt: skip
    for arch in archs:
        assert spilled[1][arch] == spilled[5][arch] == 0 < spilled[6][arch] < spilled[8][arch]
        resident = {blocks: launch_over(kernel, given, out, 1).occupancy[arch].blocks_per_sm
                    for blocks, kernel in kernels.items()}  # fmt: skip
        assert resident[1] < 5
        assert [resident[blocks] for blocks in (5, 6, 8)] == [5, 6, 8]
    if "sm_90" in archs:
        claim("LBS-01", spilled[8]["sm_90"])
        claim("LBS-02", kernels[5].profiles["sm_90"].registers)


def test_a_wish_that_fits_spills_nothing(cuda_kernel):
    """The control: a short ring fits into the registers of the boldest wish."""
    for blocks in (1, 8):
        assert not any(spill_bytes(profile) for profile in flow(cuda_kernel, blocks, FEW).profiles.values())


@pytest.mark.gpuperf(budget_s=0.4)
def test_bounds(cuda_kernel, gpu, gpuperf, claim):
    n, steps = 2**19, 128
    given = gpu.random((LENGTH, n), seed=711, low=0.5, high=1.5)

    @functools.cache
    def expected(length):
        return gpu.array(flowed(length, steps)) @ given[:length].astype("float64")

    def measure(blocks, length=LENGTH):
        out = gpu.empty((length, n))
        return gpuperf(
            launch_over(flow(cuda_kernel, blocks, length), given[:length], out, steps),
            name=f"{length} values, {blocks} blocks",
            bytes=2 * out.nbytes,
            flops=3 * out.size * steps,
            check=lambda: gpu.assert_allclose(out, expected(length), rtol=1e-5),
        )

    runs = {blocks: measure(blocks) for blocks in BLOCKS}
    short = {blocks: measure(blocks, FEW) for blocks in (1, 8)}
    time = {blocks: run.time_ns for blocks, run in runs.items()}
    claim("LBS-03", time[8] / time[5], because=[short[8].time_ns / short[1].time_ns])
    claim("LBS-04", time[5] / time[1])
    claim("LBS-05", time[6] / time[5])
