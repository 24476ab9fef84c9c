"""What arithmetic costs, and how to have it cheaper.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and R. Bourgeois, "Five basic
performance advice for porting kernels to the GPU".
"""

import numpy as np
import pytest

SOURCE = "kernels/math_cost_ladder.cu"
FMA, INVERSE, STEP = (0.999, 0.01), (1 / 1.0001, 1.0001), 2.0**-10


def place(x, size, first, turn):
    """Of an element in an array of five dimensions, and of that one in another array."""
    for a, b in ((first + turn, first), (first, first + turn)):
        x = (((x * size + a) * size + b) * size + a) * size + b
    return x


OPERATIONS = {
    "Add": ("repeat<Add, 128>", (2.0**-8, 0), lambda x, p, *_: x + p),
    "Multiply": ("repeat<Multiply, 128>", INVERSE, lambda x, p, *_: x * p),
    "Fma": ("repeat<Fma, 128>", FMA, lambda x, p, q, *_: x * p + q),
    "Fma rolled up": ("repeat<Fma, 1>", FMA, lambda x, p, q, *_: x * p + q),
    "MultiplyThenAdd": ("repeat<MultiplyThenAdd, 128>", FMA, lambda x, p, q, *_: x * p + q),
    "Divide": ("repeat<Divide, 16>", INVERSE, lambda x, _, q, *__: x / q),
    "Root": ("repeat<Root, 16>", (0, 0), lambda x, *_: np.sqrt(x)),
    "Sine": ("repeat<Sine, 16>", (0, 0), lambda x, *_: np.sin(x)),
    "DoubleLiteral": ("repeat<DoubleLiteral, 128>", (0, 0), lambda x, *_: x * 0.999 + 0.001),
    "FloatLiteral": ("repeat<FloatLiteral, 128>", (0, 0), lambda x, *_: x * 0.999 + 0.001),
    "Quotient": ("repeat<Quotient, 16>", (1, 0.75), lambda x, p, q, *_: x + np.where(x / (x + p) < q, STEP, -STEP)),
    "Product": ("repeat<Product, 16>", (1, 0.75), lambda x, p, q, *_: x + np.where(x < q * (x + p), STEP, -STEP)),
    "Remainder": ("repeat_remainder<Remainder, 16>", (7, 0), lambda x, m, *_: x % m * 0x9E3779B1 + 12345),
    "RemainderBy7": ("repeat_remainder<RemainderBy7, 16>", (7, 0), lambda x, m, *_: x % m * 0x9E3779B1 + 12345),
    "index": ("repeat_index<1>", (37,), place),
}
"""Kernel, its numbers, and what it repeats."""


def repeated(step, x, numbers, rounds):
    """In float64, or in 32 bits."""
    first, *numbers = (each.astype("float64" if x.dtype == "float32" else "uint32") for each in (x, *numbers))
    x = first
    for turn in range(rounds):
        x = step(x, *numbers, first, np.uint32(turn))
    return x


@pytest.mark.gpuperf(budget_s=0.2, cache="warm")
def test_costs(cuda_kernel, gpu, gpuperf):
    n, rounds = 2048 * gpu.sm_count, 4096
    floats, integers = gpu.random(n, seed=224, low=1, high=2), gpu.random(n, "uint32", seed=225, high=2**32)

    def measure(name):
        expression, numbers, step = OPERATIONS[name]
        template = expression.split("<")[0]
        x = floats if template == "repeat" else integers
        numbers, out = np.array(numbers, x.dtype), gpu.empty_like(x)

        def check():  # one element of 997
            expected = repeated(step, gpu.to_host(x)[::997], numbers, rounds)
            gpu.assert_allclose(gpu.to_host(out)[::997], expected, rtol=2e-3, atol=2 * STEP)

        kernel = cuda_kernel(SOURCE, template, name_expression=expression)
        return gpuperf(kernel.launch(n // 256, 256, (x, out, *numbers, rounds, n)), name=name, check=check)

    runs = {name: measure(name) for name in OPERATIONS}
    for cheap, dear in (("Multiply", "Divide"), ("Product", "Quotient"), ("RemainderBy7", "Remainder")):
        assert runs[cheap].time_ns < runs[dear].time_ns
