"""Choosing a value by a branch or by arithmetic with the flags.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/select_dataflow.cu"
IN_MEMORY = ("branch", "predicate_math")
IN_REGISTERS = ("branch_in_registers", "math_in_registers")
BLOCK = 256
ROUNDS = 256
BYTES_PER_ELEMENT = 2 * 1 + 3 * 4
"""Two flags, two values, the result."""


def launch_over(kernel, *arrays):
    n = arrays[-1].size
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=(*arrays, n))


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
        is_a, is_b = state >> 31, (state >> 30) == 1
        total = total * 0.5 + chosen(is_a, is_b, a, b)
    return total


def values(gpu, n, seed):
    """Not negative: no zero has a sign."""
    return [gpu.random(n, seed=seed + k, low=0.5, high=1.5) for k in range(2)]


def right_elements(cuda_kernel, gpu):
    """Percent of those of all kernels; bits are compared."""
    kernels = {name: cuda_kernel(SOURCE, name) for name in (*IN_MEMORY, *IN_REGISTERS)}
    n = 100_003
    flags = [gpu.array(flag) for flag in exclusive_flags(n, seed=50)]
    seeds = gpu.random(n, dtype="uint32", seed=51, low=0, high=2**32)
    a_and_b = values(gpu, n, seed=52)
    a, b = (gpu.to_host(each) for each in a_and_b)
    right = []
    for names, inputs, expected in (
        (IN_MEMORY, flags, chosen(*(gpu.to_host(flag) for flag in flags), a, b)),
        (IN_REGISTERS, [seeds], rounds_of(gpu.to_host(seeds), a, b)),
    ):
        for name in names:
            out = gpu.empty(n)
            launch_over(kernels[name], *inputs, *a_and_b, out)()
            right.append(gpu.to_host(out).view(np.uint32) == expected.view(np.uint32))
    return 100 * np.mean(right)


def test_both_ways_choose_alike(cuda_kernel, gpu, claim):
    claim("SEL-01", right_elements(cuda_kernel, gpu))


@pytest.mark.gpuperf(budget_s=0.7)
def test_choosing_by_flags(cuda_kernel, gpu, gpuperf, claim):
    """Values in registers are the control: where nothing has to be loaded no warp diverges, and the gain is gone."""
    kernels = {name: cuda_kernel(SOURCE, name) for name in (*IN_MEMORY, *IN_REGISTERS)}
    branches = {name: {p.opcodes["branch"] for p in kernel.profiles.values()} for name, kernel in kernels.items()}
    assert min(branches["branch"]) > max(branches["predicate_math"])
    assert branches["branch_in_registers"] == branches["math_in_registers"]

    n = 2**26
    flags = [gpu.array(flag) for flag in exclusive_flags(n, seed=53)]
    a_and_b = values(gpu, n, seed=54)

    def in_memory(name):
        out = gpu.zeros(n)
        launch = launch_over(kernels[name], *flags, *a_and_b, out)
        check = functools.partial(check_by, chosen, out, *flags, *a_and_b)
        return gpuperf(launch, bytes=BYTES_PER_ELEMENT * n, check=check)

    few = 2**22
    seeds = gpu.random(few, dtype="uint32", seed=56, low=0, high=2**32)
    few_values = [each[:few] for each in a_and_b]

    def in_registers(name):
        out = gpu.zeros(few)
        launch = launch_over(kernels[name], seeds, *few_values, out)
        check = functools.partial(check_by, rounds_of, out, seeds, *few_values)
        return gpuperf(launch, bytes=4 * 4 * few, check=check, cache="warm")

    def check_by(reference, out, *inputs):
        gpu.assert_equal(out, reference(*inputs))

    branch, math = (in_memory(name) for name in IN_MEMORY)
    select, convert = (in_registers(name) for name in IN_REGISTERS)

    def divergence_avoided():
        """Percent of the times that lanes of a warp went different ways."""
        return 100 * (1 - counters.divergent_targets(math) / counters.divergent_targets(branch))

    claim("SEL-02", divergence_avoided)
    claim("SEL-05", lambda: counters.lanes_not_predicated_off(branch))
    claim("SEL-04", branch.time_ns / math.time_ns)  # the branch waits for a flag before it loads what the flag is about
    claim(
        "SEL-03",
        select.time_ns / convert.time_ns,
        because=[
            lambda: counters.divergent_targets(select),
            lambda: counters.instructions(convert) / counters.instructions(select),
        ],
    )
