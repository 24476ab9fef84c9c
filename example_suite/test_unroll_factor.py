"""Unroll factors: too small for the loop's own instructions, too large for the instruction caches.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import pytest

SOURCE = "kernels/unroll_factor.cu"
FACTORS = (1, 2, 4, 16, 256, 4096, 16384)
STEPS = 2**16


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_factors(cuda_kernel, gpu, gpuperf):
    n = 132 * 4 * 256
    given = gpu.random(n, seed=701, low=2, high=3)
    # After STEPS multiply-adds a sixth to a hundredth of the way to the fixed point is left.
    a = gpu.random(n, seed=702, low=1 - 4.5 / STEPS, high=1 - 1.8 / STEPS)
    b = gpu.random(n, seed=703, low=1.8 / STEPS, high=4.5 / STEPS)

    def after_multiply_adds():
        factor, end = a.astype("float64"), b / (1 - a.astype("float64"))
        return end + factor**STEPS * (given - end)

    def after_roots():
        value = given.astype("float64")
        for _ in range(200):  # long since where it stays
            value = (value * a + b) ** -0.5
        return value

    def measure(factor, step="MultiplyAdd", steps=STEPS, expected=after_multiply_adds, rtol=4e-3):
        out = gpu.empty(n)
        kernel = cuda_kernel(SOURCE, "repeat", name_expression=f"repeat<{step}, {factor}>")
        return gpuperf(
            kernel.launch(grid=n // 256, block=256, args=(given, a, b, out, n, steps // factor)),
            name=f"{step}, factor {factor}",
            bytes=16 * n,
            flops=2 * n * steps,
            check=lambda: gpu.assert_allclose(out, expected(), rtol=rtol),
        )

    runs = {factor: measure(factor) for factor in FACTORS}
    # The control: where the special-function unit sets the pace, the loop's own instructions cost nothing.
    rolled_up, unrolled = (measure(factor, "RootOf", STEPS // 8, after_roots, rtol=1e-5) for factor in (1, 16))
    assert runs[16].time_ns < runs[4].time_ns < runs[2].time_ns < runs[1].time_ns
    assert rolled_up.time_ns < 1.2 * unrolled.time_ns
