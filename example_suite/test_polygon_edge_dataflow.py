"""Eight cases of an adjustment, by branches or by what they have in common.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/polygon_edge_dataflow.cu"
ONCE = ("branch_once", "dataflow_once")
HOT = ("branch_hot", "dataflow_hot")
BLOCK = 256
ROUNDS = 64
BYTES_ONCE = 4 + 4 + 3 * 16
"""Number of corners inside, their flags, box, edge, and the edge again."""
MIN_X, MIN_Y, MAX_X, MAX_Y = range(4)
CORNERS = ((MIN_X, MIN_Y), (MIN_X, MAX_Y), (MAX_X, MIN_Y), (MAX_X, MAX_Y))
"""In the order of the flags: left bottom, left top, right bottom, right top."""


def launch_over(kernel, *arrays):
    n = len(arrays[-1])
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=(*arrays, n))


def flags_of(bits):
    """One row per element: whether each corner is inside."""
    return (bits[:, None] >> np.arange(4) & 1).astype(np.uint8)


def odd_one_out(flags):
    """Flags of the corner to move to the origin, and of none where there is no single one; for both array libraries."""
    inside = flags.sum(axis=1)
    single = (inside % 2 == 1)[:, None]
    return (flags ^ (inside == 3)[:, None]) * single


def moved(flags, boxes, edges):
    """The edges after one adjustment, in float32: one term of each sum at most is not zero, so only one step rounds."""
    lb, lt, rb, rt = odd_one_out(flags).astype("float32").T
    out = edges.copy()
    x = (lb + lt) * boxes[:, MIN_X] + (rb + rt) * boxes[:, MAX_X]
    y = (lb + rb) * boxes[:, MIN_Y] + (lt + rt) * boxes[:, MAX_Y]
    out[:, 0::2] -= x[:, None]
    out[:, 1::2] -= y[:, None]
    return out


def moved_often(seeds, boxes, edges):
    state = seeds.copy()
    flags = (0 * edges).astype("uint8")
    for _ in range(ROUNDS):
        state = state * 1664525 + 1013904223
        bits = state >> 28
        for corner in range(4):
            flags[:, corner] = bits >> corner & 1
        edges = moved(flags, boxes, edges)
    return edges


def case_by_case(flags, box, edge):
    """One adjustment as the talk's branches have it."""
    inside = sum(flags)
    if inside not in (1, 3):
        return edge
    x, y = CORNERS[flags.index(inside == 1)]
    return [edge[0] - box[x], edge[1] - box[y], edge[2] - box[x], edge[3] - box[y]]


def all_combinations(copies, seed):
    """Each of the 16 combinations of flags, with boxes and edges at random."""
    flags = flags_of(np.resize(np.arange(16), 16 * copies))
    boxes, edges = np.random.default_rng(seed).uniform(-1, 1, (2, len(flags), 4)).astype(np.float32)
    return flags, boxes, edges


def test_reference_follows_the_cases():
    flags, boxes, edges = all_combinations(copies=5, seed=60)
    by_case = [case_by_case(*element) for element in zip(flags.tolist(), boxes, edges, strict=True)]
    np.testing.assert_array_equal(moved(flags, boxes, edges), np.array(by_case))


def share_of_equal_numbers(cuda_kernel, gpu):
    """Of all kernels, for all combinations of flags; bits are compared, but for the sign of zeros."""
    kernels = {name: cuda_kernel(SOURCE, name) for name in (*ONCE, *HOT)}
    flags, boxes, edges = all_combinations(copies=101, seed=61)
    seeds = np.random.default_rng(62).integers(0, 2**32, len(flags), dtype=np.uint32)
    inside = flags.sum(axis=1).astype(np.int32)
    equal = []
    for names, inputs, expected in (
        (ONCE, (inside, flags), moved(flags, boxes, edges)),
        (HOT, (seeds,), moved_often(seeds, boxes, edges)),
    ):
        for name in names:
            out = gpu.empty(edges.shape)
            arrays = [gpu.array(each) for each in (*inputs, boxes, edges)]
            launch_over(kernels[name], *arrays, out)()
            equal.append((gpu.to_host(out) == expected).mean())
    return np.mean(equal)


def test_both_ways_adjust_alike(cuda_kernel, gpu, claim):
    claim("PED-01", share_of_equal_numbers(cuda_kernel, gpu))


def test_one_flag_is_left_of_one_or_three(cuda_kernel, gpu, claim):
    """By the kernel itself: where all corners are at (1, 1), an edge moves by the number of flags that are set."""
    flags = flags_of(np.arange(16))
    inside = flags.sum(axis=1).astype(np.int32)
    boxes, edges = np.ones((16, 4), dtype=np.float32), np.zeros((16, 4), dtype=np.float32)
    out = gpu.empty(edges.shape)
    launch_over(
        cuda_kernel(SOURCE, "dataflow_once"), *(gpu.array(each) for each in (inside, flags, boxes, edges)), out
    )()
    left = -gpu.to_host(out)[np.isin(inside, (1, 3))]
    claim("PED-03", (left == 1).all(axis=1).sum())


@pytest.mark.gpuperf(budget_s=0.6)
def test_adjusting_edges(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in (*ONCE, *HOT)}
    for arch in kernels["branch_hot"].profiles:
        branchy, straight = (kernels[name].profiles[arch].opcodes for name in HOT)
        assert branchy["branch"] >= 2 * straight["branch"]
        assert branchy["fp32"] >= 3 * straight["fp32"]

    n = 2**23
    combinations = flags_of(np.random.default_rng(63).integers(0, 16, 2**16))
    inside = gpu.array(np.resize(combinations.sum(axis=1, dtype=np.int32), n))
    flags = gpu.array(np.resize(combinations, (n, 4)))
    boxes, edges = (gpu.random((n, 4), seed=seed, low=-1, high=1) for seed in (64, 65))
    few = 2**21
    seeds = gpu.random(few, dtype="uint32", seed=66, low=0, high=2**32)
    of_warps = np.random.default_rng(67).integers(0, 2**32, few // 32, dtype=np.uint32)
    alike_in_a_warp = gpu.array(of_warps.repeat(32))

    def measure(name, reference, *inputs, moves, of=""):
        out = gpu.zeros(inputs[-1].shape)

        def check():
            gpu.assert_allclose(out, reference(), rtol=0)

        launch = launch_over(kernels[name], *inputs, out)
        return gpuperf(launch, name=f"{name}{of}", bytes=moves * len(out), check=check)

    once = functools.cache(lambda: moved(flags, boxes, edges))
    often = functools.cache(lambda: moved_often(seeds, boxes[:few], edges[:few]))
    for name in ONCE:
        measure(name, once, inside, flags, boxes, edges, moves=BYTES_ONCE)
    branch, dataflow = (measure(name, often, seeds, boxes[:few], edges[:few], moves=BYTES_ONCE - 4) for name in HOT)
    # The control: the same flags for all lanes of a warp.
    same = functools.cache(lambda: moved_often(alike_in_a_warp, boxes[:few], edges[:few]))
    branch_alike, dataflow_alike = (
        measure(
            name, same, alike_in_a_warp, boxes[:few], edges[:few], moves=BYTES_ONCE - 4, of=", same flags in a warp"
        )
        for name in HOT
    )

    claim(
        "PED-02",
        lambda: counters.divergent_targets(dataflow) / counters.divergent_targets(branch),
        because=[lambda: counters.divergent_targets(dataflow) / (few / 32 * ROUNDS)],
    )
    claim("PED-04", branch.time_ns / dataflow.time_ns)
    if gpu.slug == "nvidia-h200":
        # Without divergence, nothing is left to gain.
        assert branch_alike.time_ns < 1.2 * dataflow_alike.time_ns
