"""Compute it again, or fetch it from a table: and where that turns round.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
import sass_counts
from launching import blocks_over

SOURCE = "kernels/recompute_or_fetch.cu"
BLOCK = 256
COEFFICIENT = np.float32(0.125)
LARGEST = 0.9
UNROLLED, OF_A_THREAD = 16, 4
SHORT, LONGER, LONG = 16, 64, 128
"""Steps: far below where it turns round, and the two on either side."""


def of_steps(cuda_kernel, name, steps):
    return cuda_kernel(SOURCE, name, name_expression=f"{name}<{steps}>")


def weight(x, steps):
    """The polynomial with all coefficients alike, as a geometric sum in float64; for NumPy and CuPy arrays."""
    x = x.astype("float64")
    return float(COEFFICIENT) * (1 - x ** (steps + 1)) / (1 - x)


def tabulating(cuda_kernel, x, table, steps):
    kernel = of_steps(cuda_kernel, "tabulate", steps)
    return kernel.launch(grid=(blocks_over(x.size, BLOCK),), block=(BLOCK,), args=(table, x, COEFFICIENT, x.size))


def recomputing(cuda_kernel, x, out, steps):
    quads = x.size // OF_A_THREAD
    kernel = of_steps(cuda_kernel, "recompute", steps)
    return kernel.launch(grid=(blocks_over(quads, BLOCK),), block=(BLOCK,), args=(out, x, COEFFICIENT, quads))


def fetching(cuda_kernel, x, out, table):
    quads = x.size // OF_A_THREAD
    kernel = cuda_kernel(SOURCE, "fetch")
    return kernel.launch(grid=(blocks_over(quads, BLOCK),), block=(BLOCK,), args=(out, x, table, quads))


@pytest.mark.parametrize("steps", [SHORT, LONG])
def test_values_are_right(cuda_kernel, gpu, steps):
    x = gpu.random(4 * 1003, seed=430, low=0, high=LARGEST)
    table, recomputed, fetched = (gpu.empty(x.size) for _ in range(3))
    launches = [
        tabulating(cuda_kernel, x, table, steps),
        recomputing(cuda_kernel, x, recomputed, steps),
        fetching(cuda_kernel, x, fetched, table),
    ]
    for launch in launches:
        launch()
    exact = gpu.to_host(x).astype(np.float64)
    expected = weight(exact, steps)
    np.testing.assert_allclose(gpu.to_host(table), expected, rtol=5e-6)
    np.testing.assert_allclose(gpu.to_host(recomputed), exact * expected, rtol=5e-6)
    np.testing.assert_allclose(gpu.to_host(fetched), exact * expected, rtol=5e-6)


@pytest.mark.gpuperf(budget_s=0.2)
def test_where_it_turns_round(cuda_kernel, gpu, gpuperf, claim):
    for steps in (SHORT, LONGER, LONG):
        kernel = of_steps(cuda_kernel, "recompute", steps)
        for arch in kernel.profiles:
            assert sass_counts.count(kernel.binaries[arch], "FFMA") == UNROLLED * OF_A_THREAD

    n = 2**25
    x = gpu.random(n, seed=431, low=0, high=LARGEST)
    expected = functools.cache(lambda steps: x * weight(x, steps))

    def measure(launch, out, name, steps, moved, flops):
        def check():
            gpu.assert_allclose(out, expected(steps), rtol=5e-6)

        return gpuperf(launch, name=f"{name}, {steps} steps", bytes=moved * n, flops=flops * n, check=check)

    def recompute(steps):
        out = gpu.empty(n)
        return measure(recomputing(cuda_kernel, x, out, steps), out, "recompute", steps, moved=8, flops=2 * steps + 1)

    def fetch(steps):
        out, table = gpu.empty(n), gpu.empty(n)
        tabulate = tabulating(cuda_kernel, x, table, steps)
        if gpu.available:
            tabulate()
        return measure(fetching(cuda_kernel, x, out, table), out, "fetch", steps, moved=12, flops=1)

    short, longer, long = (recompute(steps) for steps in (SHORT, LONGER, LONG))
    fetched, fetched_of_long = fetch(SHORT), fetch(LONG)

    def turning_point():
        """Steps that take as long as fetching, between two counts that are bound by arithmetic."""
        a_step_ns = (long.time_ns - longer.time_ns) / (LONG - LONGER)
        return LONG - (long.time_ns - fetched_of_long.time_ns) / a_step_ns

    claim("REC-01", fetched.time_ns / short.time_ns)
    claim("REC-02", long.time_ns / fetched_of_long.time_ns)
    claim("REC-03", turning_point())
    claim("REC-04", lambda: counters.bytes_read_from_dram(fetched) / counters.bytes_read_from_dram(short))
