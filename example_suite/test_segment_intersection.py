"""Which segments intersect: what division costs, and when a cheap test first pays.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/segment_intersection.cu"
OPTIONS = ("--ftz=false",)
"""The division of the talk, with subnormal numbers."""
FLOPS = {"Divide": 17, "Compare": 15, "Orient": 24}
"""Operations per pair: subtractions, three of a cross product, divisions."""
PREDICATES = tuple(FLOPS)
BOXES = (False, True)
MAGNITUDES = (1e19, 1e18, 1e2)
"""Of the coordinates, hence of a segment's length."""
TILE = 128
SPREAD = 1e3
"""Of the middles of the segments."""
HIT_BY_CHANCE = 25 / 108
"""Two segments with ends at random in a square: the ends form a convex quadrilateral (25/36), and the segments are its
diagonals (1/3)."""


def segments(n, magnitude, seed):
    """Ends (x, y, x, y) of n segments, float32."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-SPREAD, SPREAD, (n, 1, 2))
    ends = middles + rng.uniform(-magnitude, magnitude, (n, 2, 2))
    return ends.astype(np.float32).reshape(n, 4)


def side(line, x, y):
    """Sign tells on which side of the line through a segment the point is."""
    return (x - line[..., 0]) * (line[..., 3] - line[..., 1]) - (y - line[..., 1]) * (line[..., 2] - line[..., 0])


def hits_between(some, others):
    """Pairs of one segment of each that intersect (or touch; two on one line count, too)."""
    a, b = some[:, None], others[None]
    a_across_b = side(b, a[..., 0], a[..., 1]) * side(b, a[..., 2], a[..., 3]) <= 0
    b_across_a = side(a, b[..., 0], b[..., 1]) * side(a, b[..., 2], b[..., 3]) <= 0
    return int((a_across_b & b_across_a).sum())


def intersecting_pairs(ends):
    """By the signs of cross products in float64; for NumPy and CuPy arrays."""
    ends = ends.astype("float64")
    found = 0
    for first in range(0, len(ends), 256):
        some, later = ends[first : first + 256], ends[first + 256 :]
        found += (hits_between(some, some) - len(some)) // 2 + hits_between(some, later)
    return found


def allowed_error(magnitude, expected):
    """Pairs counted wrongly in float32: where products overflow, and where an end all but touches."""
    return (1e-3 if magnitude == 1e19 else 1e-6) * expected + 1


def counting_kernel(cuda_kernel, predicate, box):
    expression = f"count_intersections<{predicate}, {str(box).lower()}>"
    return cuda_kernel(SOURCE, "count_intersections", name_expression=expression, options=OPTIONS)


def launch_over(kernel, ends, count):
    n = len(ends)
    tiles = blocks_over(n, TILE)
    return kernel.launch(grid=(tiles, tiles), block=(32, 16), args=(ends, n, count))


@pytest.mark.parametrize("box", BOXES, ids=["alone", "box_first"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_count_is_right(cuda_kernel, gpu, predicate, box):
    kernel = counting_kernel(cuda_kernel, predicate, box)
    for magnitude in MAGNITUDES:
        ends = segments(3001, magnitude, seed=170)
        count = gpu.zeros(1, dtype="uint64")
        launch_over(kernel, gpu.array(ends), count)()
        expected = intersecting_pairs(ends)
        assert abs(int(gpu.to_host(count)[0]) - expected) <= allowed_error(magnitude, expected)


@pytest.mark.parametrize("box", BOXES, ids=["alone", "box_first"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_ends_that_touch_count(cuda_kernel, gpu, predicate, box):
    horizontal, upright, at_its_end = (0, 0, 4, 0), (2, -1, 2, 1), (4, 0, 4, 3)
    by_hand = [
        horizontal,
        upright,  # crosses the first
        at_its_end,  # touches the first, end to end
        (1, 1, 3, 1),  # touches the second's end with its middle
        (0, 2, 4, 2),  # parallel to the first; touches the third's middle with its end
        (-3, -3, -1, -2),  # far from all
        (0, -0.5, 1, 3),  # crosses the first and the fifth
        (3, 0.5, 6, 3.5),  # crosses the third; of the fourth and fifth it meets the box alone
    ]
    ends = np.array(by_hand, dtype=np.float32)
    count = gpu.zeros(1, dtype="uint64")
    launch_over(counting_kernel(cuda_kernel, predicate, box), gpu.array(ends), count)()
    assert int(gpu.to_host(count)[0]) == intersecting_pairs(ends) == 7


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_counting_among_many_segments(cuda_kernel, gpu, gpuperf, claim):
    n = 24_576
    given = {magnitude: gpu.array(segments(n, magnitude, seed=171)) for magnitude in MAGNITUDES}
    count = gpu.zeros(1, dtype="uint64")
    kernels = {(p, box): counting_kernel(cuda_kernel, p, box) for p in PREDICATES for box in BOXES}

    profiles = [profile for kernel in kernels.values() for profile in kernel.profiles.values()]
    assert {profile.shared_bytes for profile in profiles} == {2 * TILE * 16 + 4}
    assert {profile.stack_bytes for profile in profiles} == {0}
    occupancies = [launch_over(kernel, given[1e2], count).occupancy for kernel in kernels.values()]
    claim("SEG-17", min(found.fraction for each in occupancies for found in each.values()), equals=1)

    @functools.cache
    def expected(magnitude):
        return intersecting_pairs(given[magnitude])

    pairs = n * (n - 1) // 2

    def measure(predicate, box, magnitude):
        def check():
            found = int(gpu.to_host(count)[0])
            assert abs(found - expected(magnitude)) <= allowed_error(magnitude, expected(magnitude))
            assert magnitude == 1e2 or found / pairs == pytest.approx(HIT_BY_CHANCE, abs=0.006)

        return gpuperf(
            launch_over(kernels[predicate, box], given[magnitude], count),
            name=f"{predicate}{' after box' if box else ''} at {magnitude:g}",
            flops=FLOPS[predicate] * pairs,
            reset=lambda: count.fill(0),
            check=check,
        )

    runs = {(p, box, m): measure(p, box, m) for p in PREDICATES for box in BOXES for m in MAGNITUDES}
    assert_what_counters_say(runs, n, gpu, claim)
    assert_what_the_talk_says({configuration: run.time_ns for configuration, run in runs.items()}, claim)


def assert_what_the_talk_says(time, claim):
    """``time`` is in nanoseconds by predicate, box and magnitude."""

    def gain(predicate, magnitude):
        """How much faster than division, without boxes."""
        return time["Divide", False, magnitude] / time[predicate, False, magnitude]

    def cost_of_box(magnitude):
        return min(time[p, True, magnitude] / time[p, False, magnitude] for p in PREDICATES)

    for predicate in ("Compare", "Orient"):
        assert time[predicate, False, 1e19] / time[predicate, False, 1e18] == pytest.approx(1, abs=0.01)
    claim("SEG-08", time["Divide", False, 1e19] / time["Divide", False, 1e18], equals=2.43, tol=0.243)
    claim("SEG-05", cost_of_box(1e18), at_least=1)
    paid = [time["Divide", False, 1e2] / time[p, True, 1e2] for p in PREDICATES]
    reason = (
        "it pays more: in a round of a warp, a division takes as many issue slots as on an A100 (66 and 65), a "
        "division after a test of the boxes fewer (39 and 45), whose four comparisons are joined by & here"
    )
    claim.refuted("SEG-07", paid[0], holds=paid == pytest.approx([1.43, 1.46, 1.48], rel=0.1), reason=reason)
    claim("SEG-02", gain("Orient", 1e19), equals=2.67, tol=0.27)
    reason = (
        "it gains more: with && and || the comparisons became branches and booleans on an H200 and took longer than "
        "dividing (1.29 ms against 1.08 at 1e18); here they are joined by & and |"
    )
    claim.refuted("SEG-01", gain("Compare", 1e19), holds=2.3 <= gain("Compare", 1e19) <= 2.8, reason=reason)
    for claim_id, magnitude, compare, orient in (("SEG-04", 1e18, 1.05, 1.10), ("SEG-06", 1e2, 1.15, 1.16)):
        found = gain("Compare", magnitude), gain("Orient", magnitude)
        claim.refuted(claim_id, found[0], holds=found == pytest.approx((compare, orient), rel=0.1), reason=reason)
    claim("SEG-03", cost_of_box(1e19), at_least=1)


def rounds_of_warps(n):
    """How often a warp compares its 32 pairs, in all blocks; ``n`` is a multiple of a tile."""
    tiles = n // TILE
    above, on_the_diagonal = tiles * (tiles - 1) // 2, tiles
    columns = range(0, TILE, 32)
    in_a_tile = TILE * len(columns)
    below_a_column = sum(min(TILE, first + 31) for first in columns)  # rows that the last lane of a warp has to meet
    return above * in_a_tile + on_the_diagonal * below_a_column


def assert_what_counters_say(runs, n, gpu, claim):
    slow, fast, without_division = runs["Divide", False, 1e19], runs["Divide", False, 1e18], runs["Orient", False, 1e2]

    def busiest_unit():
        assert counters.dram_throughput(slow) < 1
        return counters.sm_throughput(slow)

    def issuing_against_pipes():
        """Percent of the cycles."""
        return 100 * counters.issue_rate(slow) - max(counters.pipe_busy(slow, pipe) for pipe in counters.PIPES)

    def share_of_peak():
        lanes = 128 * gpu.sm_count
        return counters.single_precision_operations(slow) / (2 * lanes * counters.cycles(slow))

    def lanes():
        assert counters.lanes_not_predicated_off(slow) == pytest.approx(21.59, abs=1)
        return counters.active_lanes(slow)

    def slow_divisions():
        """Each takes a reciprocal of its own, besides that of the two divisions of every round."""
        more = counters.special_instructions(slow) - counters.special_instructions(fast)
        return more / (2 * rounds_of_warps(n))

    def turns_to_stage():
        """Of a tile; one thread of a block also stores a zero."""
        tiles = n // TILE
        blocks = tiles * (tiles + 1) // 2
        turns = counters.wavefronts_per_shared_access(fast, "st") * counters.memory_instructions(fast, "shared", "st")
        return (turns / blocks - 1) / 2

    claim.counter("SEG-09", busiest_unit, at_least=75)
    claim.counter("SEG-10", issuing_against_pipes, at_least=0)
    claim.counter_refuted(
        "SEG-11",
        share_of_peak,
        holds=lambda share: abs(share - 0.29) <= 0.03,
        reason="half of it: an SM of an H200 has 128 FP32 lanes where an A100's has 64, and the same four schedulers, "
        "which here as there are busy with instructions of all kinds in nine cycles of ten",
    )
    claim.counter("SEG-12", lambda: counters.cycles_per_instruction(slow), equals=16.86, tol=1.7)
    claim.counter("SM-01", lanes, equals=23.18, tol=1)
    claim.counter("SEG-13", slow_divisions, between=(0.92, 0.96))
    claim.counter("SEG-14", lambda: counters.instructions(slow) / counters.instructions(fast), at_least=1.6)
    claim.counter("SEG-15", lambda: counters.stall_share(without_division, "short_scoreboard"), at_least=0.01)
    claim.counter_refuted(
        "RP-05",
        lambda: counters.stall_share(slow, "short_scoreboard"),
        holds=lambda share: abs(share - 0.0319) <= 0.001,
        reason="the talk's share is that of one instruction's samples; a counter has those of the whole kernel",
    )
    claim.counter("SEG-16", turns_to_stage, equals=16)
