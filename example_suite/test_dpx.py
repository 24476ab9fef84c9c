"""Add and take the larger in one instruction, for one value or for two: DPX.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import numpy as np
import pytest
import sass_counts
from launching import blocks_over

SOURCE = "kernels/dpx.cu"
BLOCK = 128
TARGETS_OF_A_THREAD = {"align_plain": 1, "align_dpx": 1, "align_dpx_s16x2": 2}
CODES = np.array([0, 3, 5, 6], dtype=np.uint16)
QUERY = CODES[[0, 1, 3, 2, 1, 1, 0, 2, 3, 0, 2, 1, 3, 3, 0, 2]]
MATCH, MISMATCH, OPEN, EXTEND = 2, -1, 3, 1


def letters(length, count, seed):
    """``length`` rows of ``count`` letters; every seventh target has the query in it."""
    rng = np.random.default_rng(seed)
    targets = CODES[rng.integers(4, size=(length, count), dtype=np.uint8)]
    targets[: QUERY.size, ::7] = QUERY[:length, None]
    return targets


def best_scores(targets):
    """Smith and Waterman in float64, cell by cell, for all targets at once: one column of letters per target."""
    length, count = targets.shape
    h = np.zeros((QUERY.size + 1, count))
    gap_in_query = np.full((QUERY.size + 1, count), -np.inf)
    best = np.zeros(count)
    for j in range(length):
        before = h.copy()
        gap_in_target = np.full(count, -np.inf)
        for i, letter in enumerate(QUERY, 1):
            gap_in_query[i] = np.maximum(gap_in_query[i] - EXTEND, before[i] - OPEN)
            gap_in_target = np.maximum(gap_in_target - EXTEND, h[i - 1] - OPEN)
            aligned = before[i - 1] + np.where(targets[j] == letter, MATCH, MISMATCH)
            h[i] = np.maximum.reduce([aligned, gap_in_query[i], gap_in_target, np.zeros(count)])
            np.maximum(best, h[i], out=best)
    return best


def launch_over(kernel, query, targets, best):
    length, count = targets.shape
    words = count // TARGETS_OF_A_THREAD[kernel.name]
    return kernel.launch(grid=(blocks_over(words, BLOCK),), block=(BLOCK,), args=(query, targets, best, words, length))


@pytest.mark.parametrize("length", [1, 3, 45])
def test_scores_are_right(cuda_kernel, gpu, length):
    targets = letters(length, count=2 * 259, seed=390)
    expected = best_scores(targets)
    kernels = {name: cuda_kernel(SOURCE, name) for name in TARGETS_OF_A_THREAD}
    for name, kernel in kernels.items():
        best = gpu.empty(targets.shape[1], dtype="int16")
        launch_over(kernel, gpu.array(QUERY), gpu.array(targets), best)()
        np.testing.assert_array_equal(gpu.to_host(best), expected, err_msg=name)


def test_what_the_compiler_fuses_by_itself(cuda_kernel, claim):
    plain, dpx, of_two = (cuda_kernel(SOURCE, name, arch=("sm_80", "sm_90")) for name in TARGETS_OF_A_THREAD)
    fused = [sass_counts.count(kernel.binaries["sm_90"], "VIADDMNMX") for kernel in (plain, dpx, of_two)]
    claim("DPX-01", fused[0] / fused[1])
    claim("DPX-02", 2 * plain.profiles["sm_90"].instructions / of_two.profiles["sm_90"].instructions)
    assert sass_counts.instructions(of_two.binaries["sm_90"])["VIADDMNMX.S16x2"] == 3 * QUERY.size
    assert sass_counts.instructions(of_two.binaries["sm_90"])["VIADDMNMX.S16x2.RELU"] == QUERY.size
    # Before sm_90 there is no such instruction, and a packed one is more than two plain ones.
    assert not sass_counts.count(of_two.binaries["sm_80"], "VIADDMNMX")
    claim("DPX-03", 2 * plain.profiles["sm_80"].instructions / of_two.profiles["sm_80"].instructions)


@pytest.mark.gpuperf(budget_s=0.2, cache="warm")
def test_many_alignments(cuda_kernel, gpu, gpuperf, claim):
    count, length, different = 2**19, 64, 2**12
    some = letters(length, different, seed=391)
    query, targets = gpu.array(QUERY), gpu.array(np.tile(some, count // different))

    @functools.cache
    def expected():
        return gpu.array(best_scores(some).astype(np.int16))

    def measure(name):
        best = gpu.empty(count, dtype="int16")

        def check():
            rows = best.reshape(-1, different)
            gpu.assert_equal(rows, expected()[None].repeat(rows.shape[0], axis=0))

        launch = launch_over(cuda_kernel(SOURCE, name), query, targets, best)
        return gpuperf(launch, name=name, bytes=targets.nbytes + best.nbytes, check=check)

    plain, dpx, of_two = (measure(name) for name in TARGETS_OF_A_THREAD)
    claim("DPX-04", plain.time_ns / of_two.time_ns)
    claim("DPX-05", plain.time_ns / dpx.time_ns)
