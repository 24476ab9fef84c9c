"""Which segments intersect: what division costs, and when a cheap test first pays.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools
import itertools

import numpy as np
import pytest

SOURCE = "kernels/segment_intersection.cu"
FLOPS = {"Signs": 15, "Divide": 17, "Orient": 24, "Compare": 15}
"""Operations per pair.  The first three are the talk's, Compare is ours."""


def side(line, point):
    """Its sign tells on which side of the line through a segment the point is; 0: on the line."""
    along, to_point = line[..., 2:] - line[..., :2], point - line[..., :2]
    return to_point[..., 0] * along[..., 1] - to_point[..., 1] * along[..., 0]


def intersecting_pairs(ends):
    """By the signs of cross products in float64, row by row of (x, y, x, y)."""
    ends, found = ends.astype("float64"), 0
    for first in range(0, len(ends), 256):
        a, b = ends[first : first + 256, None], ends[None]
        a_across_b = side(b, a[..., :2]) * side(b, a[..., 2:]) <= 0
        found += int((a_across_b & (side(a, b[..., :2]) * side(a, b[..., 2:]) <= 0)).sum())
    return (found - len(ends)) // 2  # each meets itself, and each pair is there twice


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_counting_among_many_segments(cuda_kernel, gpu, gpuperf):
    n, count = 24_576, gpu.zeros(1, dtype="uint64")

    @functools.cache
    def segments(magnitude):
        rng = np.random.default_rng(171)
        ends = rng.uniform(-1e3, 1e3, (n, 1, 2)) + rng.uniform(-magnitude, magnitude, (n, 2, 2))
        return gpu.array(ends.astype(np.float32).reshape(n, 4))

    expected = functools.cache(lambda magnitude: np.array([float(intersecting_pairs(segments(magnitude)))]))

    def measure(predicate, box, magnitude):
        wrong = 1e-3 if magnitude == 1e19 else 1e-6  # in float32 products overflow, and ends all but touch
        expression = f"count_intersections<{predicate}, {str(box).lower()}>"
        kernel = cuda_kernel(SOURCE, "count_intersections", name_expression=expression, options=("--ftz=false",))
        return gpuperf(
            kernel.launch(grid=(n // 128, n // 128), block=(32, 16), args=(segments(magnitude), n, count)),
            name=f"{predicate}{' after box' if box else ''} at {magnitude:g}",
            flops=FLOPS[predicate] * n * (n - 1) // 2,
            reset=lambda: count.fill(0),
            check=lambda: gpu.assert_allclose(count, expected(magnitude), rtol=wrong, atol=1),
        )

    runs = {key: measure(*key) for key in itertools.product(FLOPS, (False, True), (1e19, 1e18, 1e2))}
    assert max(runs[each, False, 1e19].time_ns for each in ("Signs", "Orient")) < runs["Divide", False, 1e19].time_ns
    assert all(runs[each, True, 1e2].time_ns < runs[each, False, 1e2].time_ns for each in FLOPS)
