"""Asking the question in another numeric space: compare what is cheap to compute.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/angle_compare.cu"
QUESTIONS = ("AngleByAcos", "AngleByCosine", "AngleBySquare", "DistanceByRoot", "DistanceBySquare")
LIMIT = 1.0  # radian, or unit of length; its square is the same
STEP = np.float32(0.03125)  # how far the hand moves from one query to the next


def counts(question, points, queries):
    """How many queries exceed the limit in float64, and which elements have one too close to it for float32."""
    hand, elbow, shoulder = points
    moving, v = hand - elbow, (shoulder - elbow).astype("float64")
    found, close = 0, False
    for _ in range(queries):
        u = moving.astype("float64")
        beyond = np.hypot(u[:, 0], u[:, 1]) - LIMIT
        if question.startswith("Angle"):
            cosine = (u * v).sum(axis=1) / (np.hypot(u[:, 0], u[:, 1]) * np.hypot(v[:, 0], v[:, 1]))
            beyond = np.arccos(np.clip(cosine, -1, 1)) - LIMIT
        found, close = found + (beyond > 0), close | (abs(beyond) < 1e-5)
        moving[:, 0] += STEP
    return found, close


@pytest.mark.gpuperf(budget_s=0.35)
def test_many_questions(cuda_kernel, gpu, gpuperf):
    def measure(question, queries, n, seed, cache):
        kernel = cuda_kernel(SOURCE, "count_exceeding", name_expression=f"count_exceeding<{question}, {queries}>")
        points = [gpu.random((n, 2), seed=seed + k, low=-1, high=1) for k in range(3)]  # hands, elbows, shoulders
        count = gpu.empty(n, dtype="uint8")

        def check():
            found, close = counts(question, points, queries)
            assert not bool(((count != found) & ~close).any())
            assert float(close.mean()) < 1e-3

        image = np.cos(LIMIT) if question.startswith("Angle") else LIMIT**2
        args = (*points, np.float32(LIMIT), np.float32(image), count, n)
        launch = kernel.launch(grid=(n // 256,), block=(256,), args=args)
        return gpuperf(launch, name=f"{question}, {queries}x", bytes=25 * n, check=check, cache=cache)

    acos, cosine, square, root, no_root = (measure(each, 64, 2**20, 186, "warm") for each in QUESTIONS)
    acos_once, cosine_once = (measure(each, 1, 2**24, 183, "cold") for each in QUESTIONS[:2])
    assert square.time_ns < cosine.time_ns < acos.time_ns
    assert no_root.time_ns < root.time_ns
    assert acos_once.time_ns < 1.1 * cosine_once.time_ns  # asked once, the question waits for its points


@pytest.mark.parametrize(("figure", "expected"), [("Product", 0), ("SumOfLogarithms", 1e4 * np.log(np.float32(0.9)))])
def test_product_underflows_and_sum_of_logarithms_does_not(cuda_kernel, gpu, figure, expected):
    joined = gpu.empty(1)
    kernel = cuda_kernel(SOURCE, "join_factors", name_expression=f"join_factors<{figure}>")
    kernel.launch(grid=(1,), block=(256,), args=(gpu.full(10_000, 0.9), 10_000, joined))()
    gpu.assert_allclose(joined, np.array([expected]), rtol=1e-5)
