"""Unroll factors: too small for the loop's own instructions, too large for the instruction caches.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest
import sass_counts
from launching import blocks_over

SOURCE = "kernels/unroll_factor.cu"
BLOCK = 256
FACTORS = (1, 2, 4, 16, 256, 4096, 16384)
STEPS = 2**16
INSTRUCTION_BYTES = 16


def repeat(cuda_kernel, factor, step="MultiplyAdd"):
    return cuda_kernel(SOURCE, "repeat", name_expression=f"repeat<{step}, {factor}>")


def launch_over(kernel, x, a, b, out, rounds):
    grid = (blocks_over(x.size, BLOCK),)
    return kernel.launch(grid=grid, block=(BLOCK,), args=(x, a, b, out, x.size, rounds))


def multiply_add(x, a, b):
    return x * a + b


def root_of(x, a, b):
    return 1 / (x * a + b) ** 0.5


def numbers(steps, seed, n=259):
    """Such that ``steps`` multiply-adds end well before their fixed point: every one of them shows."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(2, 3, n)
    less_than_1 = rng.uniform(0.5, 1, n) / steps
    return [part.astype(np.float32) for part in (x, 1 - less_than_1, less_than_1)]


@pytest.mark.parametrize("factor", FACTORS)
def test_multiply_adds_are_right(cuda_kernel, gpu, factor):
    for rounds in (1, 3):
        check_steps(repeat(cuda_kernel, factor), gpu, multiply_add, factor, rounds)


@pytest.mark.parametrize("factor", [1, 16])
def test_roots_are_right(cuda_kernel, gpu, factor):
    check_steps(repeat(cuda_kernel, factor, "RootOf"), gpu, root_of, factor, rounds=3)


def check_steps(kernel, gpu, reference, factor, rounds):
    steps = factor * rounds
    x, a, b = numbers(steps, seed=700)
    out = gpu.empty(x.size)
    launch_over(kernel, gpu.array(x), gpu.array(a), gpu.array(b), out, rounds)()
    expected, a, b = (part.astype(np.float64) for part in (x, a, b))
    for _ in range(steps):
        expected = reference(expected, a, b)
    np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-6 + steps * 2**-24)


def test_machine_code_grows_and_nothing_else(cuda_kernel, claim):
    kernels = {factor: repeat(cuda_kernel, factor) for factor in FACTORS}
    for arch in kernels[1].profiles:
        branches = {sass_counts.count(kernel.binaries[arch], "BRA") for kernel in kernels.values()}
        assert len(branches) <= 2  # one more where the loops are nested
        for factor, kernel in kernels.items():
            assert sass_counts.count(kernel.binaries[arch], "FFMA") == factor
            assert kernel.profiles[arch].registers <= 16
            more = kernel.profiles[arch].code_bytes - INSTRUCTION_BYTES * factor
            assert 0 < more <= INSTRUCTION_BYTES * 64
    claim("UNR-05", max(kernels[16384].profiles[arch].code_bytes for arch in kernels[1].profiles) / 2**10)


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_factors(cuda_kernel, gpu, gpuperf, claim):
    n = 132 * 4 * BLOCK
    given = gpu.random(n, seed=701, low=2, high=3)
    # After STEPS multiply-adds a sixth to a hundredth of the way to the fixed point is left.
    a = gpu.random(n, seed=702, low=1 - 4.5 / STEPS, high=1 - 1.8 / STEPS)
    b = gpu.random(n, seed=703, low=1.8 / STEPS, high=4.5 / STEPS)

    def after_multiply_adds(steps):
        factor, summand = a.astype("float64"), b.astype("float64")
        end = summand / (1 - factor)
        return end + factor**steps * (given - end)

    def after_roots(steps):
        value, factor, summand = (part.astype("float64") for part in (given, a, b))
        for _ in range(min(steps, 200)):  # long since where it stays
            value = root_of(value, factor, summand)
        return value

    def measure(factor, step="MultiplyAdd", steps=STEPS, expected=after_multiply_adds, rtol=4e-3):
        out = gpu.empty(n)
        return gpuperf(
            launch_over(repeat(cuda_kernel, factor, step), given, a, b, out, steps // factor),
            name=f"{step}, factor {factor}",
            bytes=16 * n,
            flops=2 * n * steps,
            check=lambda: gpu.assert_allclose(out, expected(steps), rtol=rtol),
        )

    runs = {factor: measure(factor) for factor in FACTORS}
    roots = {factor: measure(factor, "RootOf", STEPS // 8, after_roots, rtol=1e-5) for factor in (1, 16)}
    time = {factor: run.time_ns for factor, run in runs.items()}
    claim("UNR-01", time[1] / time[256], because=[roots[1].time_ns / roots[16].time_ns])
    claim("UNR-02", time[16384] / time[256])
    claim("UNR-03", time[16] / time[256])
    claim("UNR-04", time[4096] / time[256])
