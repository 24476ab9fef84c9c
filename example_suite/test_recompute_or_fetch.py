"""Compute it again, or fetch it from a table: and where that turns round.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/recompute_or_fetch.cu"
BLOCK = 256
COEFFICIENT = np.float32(0.125)


def weight(x, steps):
    """The polynomial with all coefficients alike, as a geometric sum in float64."""
    x = x.astype("float64")
    return float(COEFFICIENT) * (1 - x ** (steps + 1)) / (1 - x)


@pytest.mark.gpuperf(budget_s=0.2)
def test_where_it_turns_round(cuda_kernel, gpu, gpuperf):
    n = 2**25
    quads = n // 4  # of elements; a thread has one
    x = gpu.random(n, seed=431, low=0, high=0.9)

    def of_steps(name, steps):
        return cuda_kernel(SOURCE, name, name_expression=f"{name}<{steps}>")

    def measure(name, kernel, steps, *given, out, **work):
        def check():
            gpu.assert_allclose(out, x * weight(x, steps), rtol=5e-6)

        launch = kernel.launch(grid=(quads // BLOCK,), block=(BLOCK,), args=(out, x, *given, quads))
        return gpuperf(launch, name=f"{name}, {steps} steps", check=check, **work)

    def recompute(steps):
        kernel = of_steps("recompute", steps)
        return measure(
            "recompute", kernel, steps, COEFFICIENT, out=gpu.empty(n), bytes=8 * n, flops=(2 * steps + 1) * n
        )

    def fetch(steps):
        table = gpu.empty(n)
        args = (table, x, COEFFICIENT, n)
        tabulate = of_steps("tabulate", steps).launch(grid=(n // BLOCK,), block=(BLOCK,), args=args)
        if gpu.available:
            tabulate()
        return measure("fetch", cuda_kernel(SOURCE, "fetch"), steps, table, out=gpu.empty(n), bytes=12 * n, flops=n)

    short, _, long = (recompute(steps) for steps in (16, 64, 128))
    fetched, fetched_of_long = fetch(16), fetch(128)
    assert short.time_ns < fetched.time_ns
    assert long.time_ns > fetched_of_long.time_ns
