"""Asking the question in another numeric space: compare what is cheap to compute.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import numpy as np
import ptx_counts
import pytest
from launching import blocks_over

SOURCE = "kernels/angle_compare.cu"
BLOCK = 256
STEP = np.float32(0.03125)
"""How far the hand moves from one query to the next."""
ANGLE, RADIUS = 1.0, 1.0
LIMITS = {
    **dict.fromkeys(("AngleByAcos", "AngleByCosine", "AngleBySquare"), (ANGLE, np.cos(ANGLE))),
    **dict.fromkeys(("DistanceByRoot", "DistanceBySquare"), (RADIUS, RADIUS**2)),
}
"""By question: the limit, and what it is in the other space."""
TIE = 1e-5
"""Radians, or units of length: closer to the limit than this, float32 may decide either way."""
FACTORS = 10_000


def counting(cuda_kernel, question, queries):
    expression = f"count_exceeding<{question}, {queries}>"
    return cuda_kernel(SOURCE, "count_exceeding", name_expression=expression)


def launch_over(kernel, question, points, count):
    n = len(count)
    args = (*points, *(np.float32(limit) for limit in LIMITS[question]), count, n)
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=args)


def excess(question, u, v):
    """How far beyond the limit, in float64; for NumPy and CuPy arrays."""
    u, v = u.astype("float64"), v.astype("float64")
    length = np.hypot(u[:, 0], u[:, 1])
    if question.startswith("Distance"):
        return length - RADIUS
    cosine = (u * v).sum(axis=1) / (length * np.hypot(v[:, 0], v[:, 1]))
    return np.arccos(np.clip(cosine, -1, 1)) - ANGLE


def counts(question, points, queries):
    """How many queries exceed the limit, and which elements have one that is too close to call."""
    hand, elbow, shoulder = points
    u, v = hand - elbow, shoulder - elbow
    found, close = 0, False
    for _ in range(queries):
        beyond = excess(question, u, v)
        found = found + (beyond > 0)
        close = close | (abs(beyond) < TIE)
        u[:, 0] += STEP
    return found, close


def elbows(gpu, n, seed):
    """Hands, elbows and shoulders."""
    return [gpu.random((n, 2), seed=seed + k, low=-1, high=1) for k in range(3)]


def calculations(kernel):
    """How many instructions of the PTX calculate with floats, and how many of them divide."""
    found = ptx_counts.floating_point(kernel)
    return sum(found.values()), sum(n for name, n in found.items() if name.startswith("div."))


def test_questions_are_answered_alike(cuda_kernel, gpu, claim):
    kernels = {(name, queries): counting(cuda_kernel, name, queries) for name in LIMITS for queries in (1, 64)}
    n = 100_003
    points = elbows(gpu, n, seed=180)
    answers, too_close = {}, {}
    for (question, queries), kernel in kernels.items():
        count = gpu.empty(n, dtype="uint8")
        launch_over(kernel, question, points, count)()
        found = answers[question, queries] = gpu.to_host(count)
        expected, close = (gpu.to_host(part) for part in counts(question, points, queries))
        np.testing.assert_array_equal(found[~close], expected[~close], err_msg=question)
        assert 0.1 * queries < found.mean() < 0.9 * queries
        assert close.mean() < 1e-3
        too_close[question, queries] = close
    equal = answers["AngleByAcos", 64] == answers["AngleByCosine", 64]
    claim("ANG-01", equal[~too_close["AngleByAcos", 64]].mean())


def test_a_product_underflows_where_logarithms_do_not(cuda_kernel, gpu, claim):
    factors = gpu.full(FACTORS, 0.9)
    kernels = {
        figure: cuda_kernel(SOURCE, "join_factors", name_expression=f"join_factors<{figure}>")
        for figure in ("Product", "SumOfLogarithms")
    }
    joined = {}
    for figure, kernel in kernels.items():
        for n in (100, FACTORS):
            out = gpu.empty(1)
            kernel.launch(grid=(1,), block=(256,), args=(factors, n, out))()
            joined[figure, n] = float(gpu.to_host(out)[0])
    factor = float(np.float32(0.9))
    assert joined["Product", 100] == pytest.approx(factor**100, rel=1e-5)
    assert joined["SumOfLogarithms", 100] == pytest.approx(100 * np.log(factor), rel=1e-5)
    assert joined["Product", FACTORS] == 0
    claim("ANG-06", joined["SumOfLogarithms", FACTORS] / (FACTORS * np.log(factor)))


def test_instructions_of_questions(cuda_kernel, claim):
    found = {question: calculations(counting(cuda_kernel, question, 1)) for question in LIMITS}
    totals = {question: total for question, (total, _) in found.items()}
    divisions = {question: division for question, (_, division) in found.items()}
    claim("ANG-02", totals["AngleByAcos"] / totals["AngleByCosine"])
    assert totals["DistanceBySquare"] <= totals["DistanceByRoot"]
    assert divisions["AngleBySquare"] == 0
    assert divisions["AngleByCosine"] == divisions["AngleByAcos"] == 1
    claim.not_comparable("ANG-03")


@pytest.mark.gpuperf(budget_s=0.35)
def test_many_questions(cuda_kernel, gpu, gpuperf, claim):
    def measuring(n, queries, seed, cache):
        points = elbows(gpu, n, seed)
        expected = functools.cache(lambda kind: counts(kind, points, queries))

        def measure(question):
            count = gpu.empty(n, dtype="uint8")

            def check():
                found, close = expected("AngleByAcos" if question.startswith("Angle") else "DistanceByRoot")
                assert not bool(((count != found) & ~close).any())
                assert float(close.mean()) < 1e-3

            launch = launch_over(counting(cuda_kernel, question, queries), question, points, count)
            moved = sum(point.nbytes for point in points) + count.nbytes
            return gpuperf(launch, name=f"{question}, {queries}x", bytes=moved, check=check, cache=cache)

        return measure

    of_one, of_many = measuring(2**24, 1, seed=183, cache="cold"), measuring(2**20, 64, seed=186, cache="warm")
    angles = {question: of_many(question) for question in LIMITS}
    by_angle, by_cosine = of_one("AngleByAcos"), of_one("AngleByCosine")

    claim("ANG-04", angles["AngleByAcos"].time_ns / angles["AngleByCosine"].time_ns)
    claim("ANG-05", angles["DistanceByRoot"].time_ns / angles["DistanceBySquare"].time_ns)
    if gpu.slug == "nvidia-h200":
        assert angles["AngleBySquare"].time_ns < angles["AngleByCosine"].time_ns
        # The control: asked once, the question waits for its points, whatever it is.
        assert by_angle.time_ns < 1.1 * by_cosine.time_ns
