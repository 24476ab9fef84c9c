"""Add and take the larger in one instruction, for one value or for two: DPX.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/dpx.cu"
TARGETS_OF_A_THREAD = {"align_plain": 1, "align_dpx": 1, "align_dpx_s16x2": 2}
CODES = np.array([0, 3, 5, 6], dtype=np.uint16)
QUERY = CODES[[0, 1, 3, 2, 1, 1, 0, 2, 3, 0, 2, 1, 3, 3, 0, 2]]
MATCH, MISMATCH, OPEN, EXTEND = 2, -1, 3, 1


def best_scores(targets):
    """Smith and Waterman in float64, cell by cell, for all targets at once: one column of letters per target."""
    count = targets.shape[1]
    h, best = np.zeros((QUERY.size + 1, count)), np.zeros(count)
    gap_in_query = np.full(h.shape, -np.inf)
    for letters in targets:
        before = h.copy()
        gap_in_target = np.full(count, -np.inf)
        for i, letter in enumerate(QUERY, 1):
            gap_in_query[i] = np.maximum(gap_in_query[i] - EXTEND, before[i] - OPEN)
            gap_in_target = np.maximum(gap_in_target - EXTEND, h[i - 1] - OPEN)
            aligned = before[i - 1] + np.where(letters == letter, MATCH, MISMATCH)
            h[i] = np.maximum.reduce([aligned, gap_in_query[i], gap_in_target, np.zeros(count)])
            np.maximum(best, h[i], out=best)
    return best


@pytest.mark.gpuperf(budget_s=0.2, cache="warm")
def test_many_alignments(cuda_kernel, gpu, gpuperf):
    count, length, different = 2**19, 64, 2**12
    some = CODES[np.random.default_rng(391).integers(4, size=(length, different), dtype=np.uint8)]
    some[: QUERY.size, ::7] = QUERY[:, None]  # every seventh target has the query in it
    query, targets = gpu.array(QUERY), gpu.array(np.tile(some, count // different))
    expected = best_scores(some).astype(np.int16)

    def measure(name, targets_of_a_thread):
        best = gpu.empty(count, dtype="int16")
        words = count // targets_of_a_thread
        return gpuperf(
            cuda_kernel(SOURCE, name).launch(grid=words // 128, block=128, args=(query, targets, best, words, length)),
            bytes=targets.nbytes + best.nbytes,
            check=lambda: gpu.assert_equal(best, gpu.array(np.tile(expected, count // different))),
        )

    plain, dpx, of_two = (measure(*case) for case in TARGETS_OF_A_THREAD.items())
    if gpu.arch == "sm_90":  # before, there is no such instruction: a packed one is emulated, and slower
        assert of_two.time_ns < 0.7 * min(plain.time_ns, dpx.time_ns)
