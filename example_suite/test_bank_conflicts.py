"""Lanes of a warp that want the same bank of shared memory.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import functools

import counters
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
    **{f"stride_{stride}": stride * LANES for stride in (2, 3, 4, 8, 16)},
}
TURNS = {"three_way": 3, "thirtytwo_way": 32, "stride_2": 2, "stride_4": 4, "stride_8": 8, "stride_16": 16}
"""Words that a load wants from the bank that most lanes want; 1 for the other patterns."""
WORDS = 2048
REACH = 1024
THREADS = 512


def words_to_load(rng):
    return rng.integers(0, 1000, WORDS, dtype=np.int32)


def words_to_chase(rng):
    """Their own index in the low half."""
    return np.arange(WORDS, dtype=np.int32) | rng.integers(0, 1000, WORDS, dtype=np.int32) << 16


def sums_of_loads(words, word_of_lane, loads):
    """Of each lane of a warp, modulo 2^32."""
    moves = np.arange(loads) % REACH
    return words[word_of_lane[:, None] + moves].sum(axis=1, dtype=np.uint64).astype(np.uint32)


def sums_of_chase(words, word_of_lane, loads):
    return ((words[word_of_lane] >> 16).astype(np.uint64) * loads).astype(np.uint32)


def test_banks_of_the_patterns():
    for name, words in WORD_OF_LANE.items():
        wanted = np.unique(words)
        assert np.bincount(wanted % 32).max() == TURNS.get(name, 1), name


def test_sums_are_exact(cuda_kernel, gpu):
    load, chase = (cuda_kernel(SOURCE, name) for name in ("load_words", "chase_words"))
    rng = np.random.default_rng(390)
    loaded, chased = words_to_load(rng), words_to_chase(rng)
    for name, word_of_lane in WORD_OF_LANE.items():
        out = gpu.zeros((3, 2, 32), dtype="uint32")
        load.launch(grid=(3,), block=(64,), args=(out, gpu.array(loaded), gpu.array(word_of_lane), 1120))()
        expected = np.broadcast_to(sums_of_loads(loaded, word_of_lane, 1120), out.shape)
        np.testing.assert_array_equal(gpu.to_host(out), expected, err_msg=name)
        out = gpu.zeros(32, dtype="uint32")
        chase.launch(grid=(1,), block=(32,), args=(out, gpu.array(chased), gpu.array(word_of_lane), 1003))()
        np.testing.assert_array_equal(gpu.to_host(out), sums_of_chase(chased, word_of_lane, 1003), err_msg=name)


def test_cycles_of_a_load(cuda_kernel, gpu, claim):
    kernel = cuda_kernel(SOURCE, "load_words_timed")
    loads, warps = 4096, THREADS // 32
    words = words_to_load(np.random.default_rng(391))

    def cycles_per_load(name):
        """Of all warps of one SM together."""
        out = gpu.zeros((warps, 32), dtype="uint32")
        begin, end = gpu.zeros(warps, dtype="int64"), gpu.zeros(warps, dtype="int64")
        args = (out, begin, end, gpu.array(words), gpu.array(WORD_OF_LANE[name]), loads)
        launch = kernel.launch(grid=(1,), block=(THREADS,), args=args)
        for _ in range(2):  # the second run has the code in the instruction cache
            launch()
        expected = np.broadcast_to(sums_of_loads(words, WORD_OF_LANE[name], loads), out.shape)
        np.testing.assert_array_equal(gpu.to_host(out), expected, err_msg=name)
        return float(gpu.to_host(end).max() - gpu.to_host(begin).min()) / (loads * warps)

    cycles = {name: cycles_per_load(name) for name in WORD_OF_LANE}

    claim("HW-08", cycles["thirtytwo_way"])
    claim("BNK-06", (cycles["thirtytwo_way"] - cycles["stride_16"]) / 16)
    for name in ("three_way", "stride_4", "stride_8"):
        assert cycles[name] == pytest.approx(TURNS[name], rel=0.15), name
    for name in ("padded", "broadcast", "stride_3"):
        assert cycles[name] == pytest.approx(cycles["none"], rel=0.1), name


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_loading_from_banks(cuda_kernel, gpu, gpuperf, claim):
    load, chase = (cuda_kernel(SOURCE, name) for name in ("load_words", "chase_words"))
    for profile in load.profiles.values():
        assert profile.shared_bytes == 4 * WORDS
        assert profile.opcodes["shared_load"] == 32

    rng = np.random.default_rng(392)
    loaded, chased = words_to_load(rng), words_to_chase(rng)

    def measure(name):
        """As many blocks as there are SMs."""
        loads = 4096
        out = gpu.zeros((gpu.sm_count * THREADS // 32, 32), dtype="uint32")

        def check():
            expected = sums_of_loads(loaded, WORD_OF_LANE[name], loads)
            np.testing.assert_array_equal(gpu.to_host(out), np.broadcast_to(expected, out.shape))

        args = (out, gpu.array(loaded), gpu.array(WORD_OF_LANE[name]), loads)
        return gpuperf(load.launch(grid=(gpu.sm_count,), block=(THREADS,), args=args), name=name, check=check)

    def measure_chase(name):
        loads = 10_000
        out = gpu.zeros(32, dtype="uint32")

        def check():
            expected = sums_of_chase(chased, WORD_OF_LANE[name], loads)
            np.testing.assert_array_equal(gpu.to_host(out), expected)

        args = (out, gpu.array(chased), gpu.array(WORD_OF_LANE[name]), loads)
        return gpuperf(chase.launch(grid=(1,), block=(32,), args=args), name=f"chase, {name}", check=check)

    runs = {name: measure(name) for name in ("none", "three_way", "thirtytwo_way", "padded", "broadcast")}
    lone, in_turns = (measure_chase(name) for name in ("none", "thirtytwo_way"))
    turns = functools.partial(counters.wavefronts_per_shared_access, way="ld")
    claim("BNK-01", lambda: turns(runs["none"]))
    claim("BNK-02", lambda: turns(runs["three_way"]))
    claim("BNK-03", lambda: turns(runs["thirtytwo_way"]))
    claim("BNK-04", lambda: turns(runs["padded"]))
    time = {name: run.time_ns for name, run in runs.items()}

    assert max(time["padded"], time["broadcast"]) <= 1.1 * time["none"] <= time["three_way"]
    conflict = time["thirtytwo_way"] / time["none"]
    claim("BNK-05", conflict)
    # The controls.  The same code and as many loads, but padded: no conflict.  And with the same conflicts
    # in a lone warp, which waits for the latency of each load: they cost a tenth of what they do where turns are all.
    assert time["padded"] == pytest.approx(time["none"], rel=0.1)
    assert 1.3 <= in_turns.time_ns / lone.time_ns <= 0.2 * conflict
