"""Choosing a value by a branch or by arithmetic with the flags.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/select_dataflow.cu"
IN_MEMORY = ("branch", "predicate_math")
IN_REGISTERS = ("branch_in_registers", "math_in_registers")
BLOCK = 256
ROUNDS = 256
BYTES_PER_ELEMENT = 2 * 1 + 3 * 4
"""Two flags, two values, the result."""


def exclusive_flags(n, seed):
    """A third of the elements has the first flag, a third the second one, a third none."""
    kinds = np.random.default_rng(seed).integers(0, 3, min(n, 2**20))
    return [np.resize((kinds == kind).astype(np.uint8), n) for kind in (1, 2)]


def chosen(is_a, is_b, a, b):
    """Exact: one term at most is not zero."""
    return is_a.astype("float32") * a + is_b.astype("float32") * b


def rounds_of(seeds, a, b):
    """The sum after all rounds, in float32: halves are exact, so every round rounds once, as in the kernels."""
    state, total = seeds, 0 * a
    for _ in range(ROUNDS):
        state = state * 1664525 + 1013904223
        total = total * 0.5 + chosen(state >> 31, (state >> 30) == 1, a, b)
    return total


@pytest.mark.gpuperf(budget_s=0.7)
def test_choosing_by_flags(cuda_kernel, gpu, gpuperf):
    def measure(name, reference, *inputs, moved, **options):
        n = len(inputs[-1])
        out = gpu.zeros(n)
        launch = cuda_kernel(SOURCE, name).launch(grid=(n // BLOCK,), block=(BLOCK,), args=(*inputs, out, n))
        return gpuperf(launch, bytes=moved * n, check=lambda: gpu.assert_equal(out, reference(*inputs)), **options)

    n = 2**26
    flags = [gpu.array(flag) for flag in exclusive_flags(n, seed=53)]
    values = [gpu.random(n, seed=54 + k, low=0.5, high=1.5) for k in range(2)]
    branch, math = (measure(name, chosen, *flags, *values, moved=BYTES_PER_ELEMENT) for name in IN_MEMORY)

    # The control: nothing has to be loaded, so the compiler itself selects without a branch.
    few = 2**22
    seeds = gpu.random(few, dtype="uint32", seed=56, low=0, high=2**32)
    few_values = [each[:few] for each in values]
    select, convert = (measure(name, rounds_of, seeds, *few_values, moved=4 * 4, cache="warm") for name in IN_REGISTERS)
    assert math.time_ns < branch.time_ns
    assert select.time_ns < convert.time_ns
