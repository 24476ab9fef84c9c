"""A mask of true and false over the lanes of a warp.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/simt_divergence_mask.cu"
MASKS = {"mask_divergent": 0b1011, "uniform_true": 0xFFFFFFFF, "uniform_false": 0}
"""Bit of a lane: it multiplies and adds; otherwise it turns and flips."""
BLOCK = 256
FMAS, TURNS = 1024, 240
FACTOR, TERM = np.float32(0.998), np.float32(0.002)
KEY = 0x9E3779B9


def launch_over(kernel, given, out, mask):
    args = (given, out, mask, FACTOR, TERM, KEY, given.size)
    return kernel.launch(grid=(blocks_over(given.size, BLOCK),), block=(BLOCK,), args=args)


def multiplied(x):
    """The end of the chain of multiply-adds, in float64: a geometric series."""
    power = float(FACTOR) ** FMAS
    return power * x.astype("float64") + float(TERM) * (1 - power) / (1 - float(FACTOR))


def turned(bits):
    """The end of the chain of turns, exactly.  Turns and flips commute with an exclusive or: only the key's part of
    the result, that of an input of zero, must be gone through step by step; the input itself is turned in one go."""
    flips = 0
    for _ in range(TURNS):
        flips = ((flips << 5 | flips >> 27) & 0xFFFFFFFF) ^ KEY
    by = 5 * TURNS % 32
    return (bits << by | bits >> (32 - by) if by else bits) ^ flips


def lanes_of(mask):
    return np.array([bool(mask >> lane & 1) for lane in range(32)])


def test_every_lane_runs_its_side(cuda_kernel, gpu):
    kernel = cuda_kernel(SOURCE, "branch_by_mask")
    given = np.random.default_rng(20).uniform(0.5, 1.5, 32 * 331 + 5).astype(np.float32)
    for name, mask in MASKS.items():
        out = gpu.zeros(given.size, dtype="uint32")
        launch_over(kernel, gpu.array(given.view(np.uint32)), out, mask)()
        found = gpu.to_host(out)
        true = np.resize(lanes_of(mask), given.size)
        np.testing.assert_allclose(found.view(np.float32)[true], multiplied(given[true]), rtol=5e-5, err_msg=name)
        np.testing.assert_array_equal(found[~true], turned(given.view(np.uint32)[~true]), err_msg=name)


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_branch_by_lane(cuda_kernel, gpu, gpuperf, claim):
    """The uniform masks are the control: all lanes of a warp agree, and it issues the instructions of one side."""
    kernel = cuda_kernel(SOURCE, "branch_by_mask")
    for profile in kernel.profiles.values():  # both sides are there as loops
        assert profile.opcodes["fp32"] >= 64
        assert profile.opcodes["integer"] >= 2 * 60

    n = 2**22
    floats = gpu.random(n, seed=21, low=0.5, high=1.5)
    given = floats.view("uint32")

    def measure(name, mask):
        out = gpu.zeros(n, dtype="uint32")

        def check():
            for lane, true in enumerate(lanes_of(mask)):
                if true:
                    gpu.assert_allclose(out.view("float32")[lane::32], multiplied(floats[lane::32]), rtol=5e-5)
                else:
                    gpu.assert_equal(out[lane::32], turned(given[lane::32]))

        return gpuperf(launch_over(kernel, given, out, mask), name=name, bytes=2 * given.nbytes, check=check)

    divergent, true, false = (measure(name, mask) for name, mask in MASKS.items())

    def expected_lanes():
        """Of the divergent warp: the lanes of each side, by the instructions of that side."""
        lanes = int(lanes_of(MASKS["mask_divergent"]).sum())
        of_true, of_false = counters.instructions(true), counters.instructions(false)
        return (lanes * of_true + (32 - lanes) * of_false) / (of_true + of_false)

    executed = counters.instructions
    claim("SM-02", lambda: executed(divergent) / (executed(true) + executed(false)))
    claim("SM-03", lambda: counters.active_lanes(divergent) / expected_lanes())
    claim("SM-06", lambda: min(counters.active_lanes(run) for run in (true, false)))
    assert divergent.time_ns <= 1.05 * (true.time_ns + false.time_ns)
    assert divergent.time_ns >= 1.1 * max(true.time_ns, false.time_ns)
