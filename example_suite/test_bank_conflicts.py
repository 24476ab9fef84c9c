"""Lanes of a warp that want the same bank of shared memory.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import numpy as np
import pytest

SOURCE = "kernels/bank_conflicts.cu"
LANES = np.arange(32, dtype=np.int32)
WORD_OF_LANE = {
    "none": LANES,
    "three_way": np.where(LANES < 3, 32 * LANES, LANES).astype(np.int32),
    "thirtytwo_way": 32 * LANES,
    "padded": 33 * LANES,
    "broadcast": 0 * LANES,
}


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_loading_from_banks(cuda_kernel, gpu, gpuperf):
    rng = np.random.default_rng(392)
    words = rng.integers(0, 1000, 2048, dtype=np.int32)
    links = np.arange(2048, dtype=np.int32) | rng.integers(0, 1000, 2048, dtype=np.int32) << 16  # to themselves

    def measure(name, kernel, given, lanes, loads, out, expected):
        block = min(out.size, 512)
        args = (out, gpu.array(given), gpu.array(lanes), loads)
        launch = cuda_kernel(SOURCE, kernel).launch(grid=(out.size // block,), block=(block,), args=args)

        def check():  # sums modulo 2^32, of each lane of a warp
            sums = np.broadcast_to(expected.astype(np.uint32), out.shape)
            np.testing.assert_array_equal(gpu.to_host(out), sums)

        return gpuperf(launch, name=name, check=check)

    def load(name):
        """By 16 warps of every SM."""
        lanes, loads, out = WORD_OF_LANE[name], 4096, gpu.zeros((gpu.sm_count * 16, 32), dtype="uint32")
        expected = words[lanes[:, None] + np.arange(loads) % 1024].sum(axis=1, dtype=np.uint64)
        return measure(name, "load_words", words, lanes, loads, out, expected)

    def chase(name):
        """By a lone warp, whose loads wait for each other."""
        lanes, loads, out = WORD_OF_LANE[name], 10_000, gpu.zeros(32, dtype="uint32")
        expected = (links[lanes] >> 16).astype(np.uint64) * loads
        return measure(f"chase, {name}", "chase_words", links, lanes, loads, out, expected)

    runs = {name: load(name) for name in WORD_OF_LANE}
    lone, conflicting = (chase(name) for name in ("none", "thirtytwo_way"))

    time = {name: run.time_ns for name, run in runs.items()}
    assert max(time["padded"], time["broadcast"]) <= 1.1 * time["none"] <= time["three_way"]
    # Where each load's latency is the wait, the same conflicts cost a fifth at most.
    assert 1.3 <= conflicting.time_ns / lone.time_ns <= 0.2 * time["thirtytwo_way"] / time["none"]
