"""Which segments intersect: what division costs, and when a cheap test first pays.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over
from rules_of_thumb import gain_of_full_warps

SOURCE = "kernels/segment_intersection.cu"
OPTIONS = ("--ftz=false",)
"""The division of the talk, with subnormal numbers."""
FLOPS = {"Divide": 17, "Compare": 15, "Orient": 24, "Signs": 15}
"""Operations per pair: subtractions, three of a cross product, divisions."""
PREDICATES = tuple(FLOPS)
OF_THE_TALK = ("Divide", "Signs", "Orient")
"""As its listings have them; Compare is one of ours."""
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


@functools.cache
def right_count(n, magnitude, seed):
    """Whichever kernel counts."""
    return intersecting_pairs(segments(n, magnitude, seed))


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
        expected = right_count(3001, magnitude, seed=170)
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
    assert {found.fraction for each in occupancies for found in each.values()} == {1}

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
    time = {configuration: run.time_ns for configuration, run in runs.items()}
    assert_what_the_talk_says(time, claim)
    if gpu.slug == "nvidia-h200":
        # The control: no division of smaller numbers takes the slow path, and most of the gain is gone.
        by_magnitude = [time["Divide", False, m] / time["Compare", False, m] for m in (1e19, 1e18)]
        assert by_magnitude[0] > 2 * by_magnitude[1]
        # The same comparisons, joined by & alone.
        assert time["Compare", False, 1e18] < 0.9 * time["Signs", False, 1e18]


def assert_what_the_talk_says(time, claim):
    """``time`` is in nanoseconds by predicate, box and magnitude."""

    def gain(predicate, magnitude, box=False):
        """How much faster than division without boxes."""
        return time["Divide", False, magnitude] / time[predicate, box, magnitude]

    def cost_of_box(magnitude):
        return min(time[p, True, magnitude] / time[p, False, magnitude] for p in OF_THE_TALK)

    claim("SEG-08", time["Divide", False, 1e19] / time["Divide", False, 1e18])
    claim("SEG-22", time["Orient", False, 1e19] / time["Orient", False, 1e18])
    claim("SEG-24", time["Signs", False, 1e19] / time["Signs", False, 1e18])
    claim("SEG-01", gain("Signs", 1e19))
    claim("SEG-02", gain("Orient", 1e19))
    claim("SEG-03", cost_of_box(1e19))
    claim("SEG-04", gain("Signs", 1e18))
    claim("SEG-18", gain("Orient", 1e18))
    claim("SEG-05", cost_of_box(1e18))
    claim("SEG-06", gain("Signs", 1e2))
    claim("SEG-19", gain("Orient", 1e2))
    claim("SEG-07", gain("Divide", 1e2, box=True))
    claim("SEG-20", gain("Signs", 1e2, box=True))
    claim("SEG-21", gain("Orient", 1e2, box=True))


def rounds_of_warps(n):
    """How often a warp compares its 32 pairs, in all blocks; ``n`` is a multiple of a tile."""
    tiles = n // TILE
    above, on_the_diagonal = tiles * (tiles - 1) // 2, tiles
    columns = range(0, TILE, 32)
    in_a_tile = TILE * len(columns)
    below_a_column = sum(min(TILE, first + 31) for first in columns)  # rows that the last lane of a warp has to meet
    return above * in_a_tile + on_the_diagonal * below_a_column


def assert_what_counters_say(runs, n, gpu, claim):
    slow, fast = runs["Divide", False, 1e19], runs["Divide", False, 1e18]

    def busiest_unit():
        assert counters.dram_throughput(slow) < 1
        return counters.sm_throughput(slow)

    def issuing():
        """Percent of the cycles."""
        return 100 * counters.issue_rate(slow)

    def operations_per_cycle():
        return counters.single_precision_operations(slow) / (gpu.sm_count * counters.cycles(slow))

    def slow_divisions():
        """Each takes a reciprocal of its own, besides that of the two divisions of every round."""
        more = counters.special_instructions(slow) - counters.special_instructions(fast)
        return more / (2 * rounds_of_warps(n))

    def percent_of_the_slow_path():
        return 100 * (1 - counters.instructions(fast) / counters.instructions(slow))

    def turns_to_stage():
        """Of a tile; one thread of a block also stores a zero."""
        tiles = n // TILE
        blocks = tiles * (tiles + 1) // 2
        turns = counters.wavefronts_per_shared_access(fast, "st") * counters.memory_instructions(fast, "shared", "st")
        return (turns / blocks - 1) / 2

    claim("SEG-09", busiest_unit)
    claim("SEG-10", issuing)
    claim("SEG-23", lambda: issuing() - max(counters.pipe_busy(slow, pipe) for pipe in counters.PIPES))
    claim("SEG-11", operations_per_cycle)
    claim("SEG-12", lambda: counters.cycles_per_instruction(slow))

    def gain_by_ncu():
        return 100 * gain_of_full_warps(counters.lanes_not_predicated_off(slow), counters.sm_throughput(slow) / 100)

    claim("SM-01", lambda: counters.active_lanes(slow))
    claim("SM-05", lambda: counters.lanes_not_predicated_off(slow))
    claim("SM-04", gain_by_ncu)
    claim("SEG-13", slow_divisions)
    claim("SEG-14", percent_of_the_slow_path)
    claim("RP-05", lambda: counters.stall_share(slow, "short_scoreboard"))
    claim("SEG-16", turns_to_stage)
