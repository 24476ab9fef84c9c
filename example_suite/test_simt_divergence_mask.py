"""A warp whose lanes disagree at a branch issues both sides, one after the other.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/simt_divergence_mask.cu"
MASKS = {"mask_divergent": 0b1011, "uniform_true": 0xFFFFFFFF, "uniform_false": 0}
"""Bit of a lane: it multiplies and adds; otherwise it turns and flips."""
BLOCK = 256
FMAS, TURNS = 1024, 240
FACTOR, TERM = np.float32(0.998), np.float32(0.002)
KEY = 0x9E3779B9


def multiplied(x):
    """The end of the chain of multiply-adds, in float64: a geometric series."""
    power = float(FACTOR) ** FMAS
    return power * x.astype("float64") + float(TERM) * (1 - power) / (1 - float(FACTOR))


def turned(bits):
    """The end of the chain of turns.  Turns commute with an exclusive or, so only the key goes step by step."""
    flips = 0
    for _ in range(TURNS):
        flips = ((flips << 5 | flips >> 27) & 0xFFFFFFFF) ^ KEY
    by = 5 * TURNS % 32
    return (bits << by | bits >> (32 - by)) ^ flips


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_branch_by_lane(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel(SOURCE, "branch_by_mask")
    n = 2**22
    floats = gpu.random(n, seed=21, low=0.5, high=1.5)
    given = floats.view("uint32")

    def measure(name, mask):
        out = gpu.zeros(n, dtype="uint32")

        def check():
            for lane in range(32):
                if mask >> lane & 1:
                    gpu.assert_allclose(out.view("float32")[lane::32], multiplied(floats[lane::32]), rtol=5e-5)
                else:
                    gpu.assert_equal(out[lane::32], turned(given[lane::32]))

        launch = kernel.launch(grid=(n // BLOCK,), block=(BLOCK,), args=(given, out, mask, FACTOR, TERM, KEY, n))
        return gpuperf(launch, name=name, bytes=2 * given.nbytes, check=check)

    divergent, true, false = (measure(name, mask) for name, mask in MASKS.items())
    assert 1.1 * max(true.time_ns, false.time_ns) < divergent.time_ns < 1.05 * (true.time_ns + false.time_ns)
