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

    def measure(name, kernel, given, word_of_lane, loads, expected, shape, block):
        out = gpu.zeros(shape, dtype="uint32")
        args = (out, gpu.array(given), gpu.array(word_of_lane), loads)
        launch = cuda_kernel(SOURCE, kernel).launch(grid=(out.size // block,), block=(block,), args=args)

        def check():  # sums modulo 2^32, of each lane of a warp
            sums = expected.astype(np.uint32)
            np.testing.assert_array_equal(gpu.to_host(out), np.broadcast_to(sums, out.shape))

        return gpuperf(launch, name=name, check=check)

    def measure_loads(name):
        """By 16 warps of every SM."""
        word_of_lane, loads = WORD_OF_LANE[name], 4096
        expected = words[word_of_lane[:, None] + np.arange(loads) % 1024].sum(axis=1, dtype=np.uint64)
        return measure(name, "load_words", words, word_of_lane, loads, expected, (gpu.sm_count * 16, 32), 512)

    def measure_chase(name):
        """By a lone warp, whose loads wait for each other."""
        word_of_lane, loads = WORD_OF_LANE[name], 10_000
        expected = (links[word_of_lane] >> 16).astype(np.uint64) * loads
        return measure(f"chase, {name}", "chase_words", links, word_of_lane, loads, expected, 32, 32)

    runs = {name: measure_loads(name) for name in WORD_OF_LANE}
    lone, in_turns = (measure_chase(name) for name in ("none", "thirtytwo_way"))

    time = {name: run.time_ns for name, run in runs.items()}
    assert max(time["padded"], time["broadcast"]) <= 1.1 * time["none"] <= time["three_way"]
    # Where each load's latency is the wait, the same conflicts cost a fifth at most.
    assert 1.3 <= in_turns.time_ns / lone.time_ns <= 0.2 * time["thirtytwo_way"] / time["none"]
