"""What arithmetic costs, and how to have it cheaper.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and R. Bourgeois, "Five basic
performance advice for porting kernels to the GPU".
"""

from collections.abc import Callable
from typing import NamedTuple

import counters
import numpy as np
import ptx_counts
import pytest
from launching import blocks_over

SOURCE = "kernels/math_cost_ladder.cu"
BLOCK = 256
STEP = 2.0**-10
SCRAMBLE, SHIFT = 0x9E3779B1, 12345


class Operation(NamedTuple):
    """What is repeated, and how far the loop around it is unrolled."""

    step: Callable
    """The same in float64, of x, p and q."""
    p: float = 0.0
    q: float = 0.0
    unrolled: int = 16


def stepping(x, p, q):
    return x + np.where(x / (x + p) < q, STEP, -STEP)


OPERATIONS = {
    "Add": Operation(lambda x, p, _: x + p, 2.0**-8, unrolled=128),
    "Multiply": Operation(lambda x, p, _: x * p, 1 / 1.0001, 1.0001, unrolled=128),
    "Fma": Operation(lambda x, p, q: x * p + q, 0.999, 0.01, unrolled=128),
    "MultiplyThenAdd": Operation(lambda x, p, q: x * p + q, 0.999, 0.01, unrolled=128),
    "Divide": Operation(lambda x, _, q: x / q, 1 / 1.0001, 1.0001),
    "DivideByConstant": Operation(lambda x, *_: x / float(np.float32(1.0001))),
    "Root": Operation(lambda x, *_: np.sqrt(x)),
    "Sine": Operation(lambda x, *_: np.sin(x)),
    "DoubleLiteral": Operation(lambda x, *_: x * 0.999 + 0.001, unrolled=128),
    "FloatLiteral": Operation(lambda x, *_: x * 0.999 + 0.001, unrolled=128),
    "ConstantInLoop": Operation(lambda x, p, q: x * p + np.exp(q), 0.999, -4.0, unrolled=128),
    "Quotient": Operation(stepping, 1.0, 0.75),
    "Product": Operation(stepping, 1.0, 0.75),
}
REMAINDERS = {"Remainder": 7, "RemainderBy7": 7, "RemainderBy8": 8, "Mask": 8}
"""Divisors."""


def repeating(cuda_kernel, name, unrolled=None):
    unrolled = unrolled or OPERATIONS[name].unrolled
    return cuda_kernel(SOURCE, "repeat", name_expression=f"repeat<{name}, {unrolled}>")


def repeating_remainder(cuda_kernel, name):
    return cuda_kernel(SOURCE, "repeat_remainder", name_expression=f"repeat_remainder<{name}, 16>")


def launch_over(kernel, given, out, *numbers):
    return kernel.launch(
        grid=(blocks_over(given.size, BLOCK),), block=(BLOCK,), args=(given, out, *numbers, given.size)
    )


def parameters(name):
    """p and q, as the kernel has them."""
    operation = OPERATIONS[name]
    return np.float32(operation.p), np.float32(operation.q)


def repeated(name, x, rounds):
    """In float64; for NumPy and CuPy arrays."""
    p, q = (float(number) for number in parameters(name))
    x = x.astype("float64")
    for _ in range(rounds):
        x = OPERATIONS[name].step(x, p, q)
    return x


def remainders(x, divisor, rounds):
    """In 32 bits, as the kernel; for NumPy and CuPy arrays."""
    for _ in range(rounds):
        x = x % np.uint32(divisor) * np.uint32(SCRAMBLE) + np.uint32(SHIFT)
    return x


def fp64(kernel):
    counts = ptx_counts.instructions(kernel)
    return sum(n for opcode, n in counts.items() if "f64" in opcode)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_right(cuda_kernel, gpu, name):
    given = gpu.random(10_007, seed=220, low=1, high=2)
    for rounds in (1, 3, 130):
        out = gpu.empty_like(given)
        launch_over(repeating(cuda_kernel, name), given, out, *parameters(name), rounds)()
        np.testing.assert_allclose(gpu.to_host(out), repeated(name, gpu.to_host(given), rounds), rtol=2e-5)


@pytest.mark.parametrize("name", REMAINDERS)
def test_remainder_is_right(cuda_kernel, gpu, name):
    given = gpu.random(10_007, dtype="uint32", seed=221, high=2**32)
    for rounds in (1, 3, 50):
        out = gpu.empty_like(given)
        divisor = np.uint32(REMAINDERS[name])
        launch_over(repeating_remainder(cuda_kernel, name), given, out, divisor, np.uint32(0), rounds)()
        np.testing.assert_array_equal(gpu.to_host(out), remainders(gpu.to_host(given), divisor, rounds))


def test_power_is_right(cuda_kernel, gpu):
    given = gpu.random(10_007, seed=222, low=-2, high=2)
    for kernel, exponent in (power_kernels(cuda_kernel)[0], ()), (power_kernels(cuda_kernel)[1], (5,)):
        out = gpu.empty_like(given)
        grid = (blocks_over(given.size, BLOCK),)
        kernel.launch(grid=grid, block=(BLOCK,), args=(given, out, given.size, *exponent))()
        np.testing.assert_allclose(gpu.to_host(out), gpu.to_host(given).astype(np.float64) ** 5, rtol=1e-6)


def power_kernels(cuda_kernel):
    """The exponent 5 known to the compiler, and not."""
    return (
        cuda_kernel(SOURCE, "power_template", name_expression="power_template<5>"),
        cuda_kernel(SOURCE, "power_at_run_time"),
    )


def test_fused_is_not_separate(cuda_kernel, gpu, claim):
    kernels = [repeating(cuda_kernel, name) for name in ("Fma", "MultiplyThenAdd")]
    given = gpu.random(10**6, seed=223, low=-2, high=2)
    outs = []
    for kernel in kernels:
        outs.append(gpu.empty_like(given))
        launch_over(kernel, given, outs[-1], np.float32(0.7), np.float32(0.3), 1)()
    fused, separate = (gpu.to_host(out) for out in outs)
    claim("COST-05", np.count_nonzero(fused != separate), at_least=1)


def test_instructions(cuda_kernel, claim):
    double, single = repeating(cuda_kernel, "DoubleLiteral"), repeating(cuda_kernel, "FloatLiteral")
    assert fp64(single) == 0
    claim("COST-06", fp64(double), at_least=1)
    # Unrolled 128 times, and yet a single exponential.
    assert {profile.opcodes["mufu"] for profile in repeating(cuda_kernel, "ConstantInLoop").profiles.values()} == {1}

    counts = {
        name: {arch: profile.instructions for arch, profile in repeating_remainder(cuda_kernel, name).profiles.items()}
        for name in (*REMAINDERS, "Nothing")
    }
    beyond = {name: {arch: n - counts["Nothing"][arch] for arch, n in each.items()} for name, each in counts.items()}
    assert all(beyond["RemainderBy8"][arch] < beyond["RemainderBy7"][arch] for arch in double.profiles)
    claim("COST-02", min(n / beyond["RemainderBy7"][arch] for arch, n in beyond["Remainder"].items()), at_least=3)

    template, run_time = (kernel.profiles for kernel in power_kernels(cuda_kernel))
    # Of instructions, that is: both kernels get by with a dozen registers, one or two more or less.
    assert max(profile.registers for each in (template, run_time) for profile in each.values()) <= 16
    claim("COST-09", max(template[arch].instructions / run_time[arch].instructions for arch in template), at_most=1)


@pytest.mark.gpuperf(budget_s=0.2, cache="warm")
def test_costs(cuda_kernel, gpu, gpuperf, claim):
    n, rounds = 2048 * gpu.sm_count, 4096
    given = gpu.random(n, seed=224, low=1, high=2)
    integers = gpu.random(n, dtype="uint32", seed=225, high=2**32)
    sample = 997  # an element in so many is checked

    def measure(name, unrolled=None):
        out = gpu.empty_like(given)

        def check():
            expected = repeated(name, gpu.to_host(given)[::sample], rounds)
            gpu.assert_allclose(gpu.to_host(out)[::sample], expected, rtol=2e-3, atol=2 * STEP)

        launch = launch_over(repeating(cuda_kernel, name, unrolled), given, out, *parameters(name), rounds)
        return gpuperf(launch, name=f"{name}{' rolled up' if unrolled == 1 else ''}", check=check)

    def measure_remainder(name):
        out = gpu.empty_like(integers)
        divisor = np.uint32(REMAINDERS[name])

        def check():
            expected = remainders(gpu.to_host(integers)[::sample], divisor, rounds)
            np.testing.assert_array_equal(gpu.to_host(out)[::sample], expected)

        kernel = repeating_remainder(cuda_kernel, name)
        return gpuperf(launch_over(kernel, integers, out, divisor, np.uint32(0), rounds), name=name, check=check)

    timed = [name for name in OPERATIONS if name not in ("DivideByConstant", "ConstantInLoop")]
    runs = {name: measure(name) for name in timed}
    runs |= {name: measure_remainder(name) for name in ("Remainder", "RemainderBy7")}
    rolled_up = measure("Fma", unrolled=1)

    def busy_with_the_counter():
        assert counters.stall(rolled_up, "wait") >= counters.longest_stall(rolled_up)
        return counters.pipe_busy(rolled_up, "fma")

    claim.counter_refuted(
        "COST-07",
        busy_with_the_counter,
        holds=lambda percent: percent >= 50,
        reason="warps do wait for fixed latencies most, but no IMAD is left: the loop's counter is added to by the "
        "uniform datapath and compared on the ALU, which is 39 % busy; all that the FMA pipe has is the loop's FMA",
    )
    assert_what_the_talks_say({name: run.time_ns for name, run in runs.items()}, claim)
    if gpu.slug == "nvidia-h200":
        assert rolled_up.time_ns > 1.5 * runs["Fma"].time_ns


def assert_what_the_talks_say(time, claim):
    """``time`` is in nanoseconds by operation."""
    claim("COST-03", time["Divide"] / time["Multiply"], at_least=2)
    claim("COST-08", time["Quotient"] / time["Product"], at_least=1.5)
    assert time["DoubleLiteral"] > 1.3 * time["FloatLiteral"]
    assert time["Remainder"] > time["RemainderBy7"]
    assert min(time["Sine"], time["Divide"], time["Root"]) > 1.3 * max(time["Multiply"], time["Add"], time["Fma"])
    least = min(time["Sine"], time["Root"]) / max(time["Divide"], time["Remainder"])
    reason = "a root is one special-function instruction and a few FMA; an integer remainder takes three of the former"
    claim.refuted("COST-01", least, holds=least > 1, reason=reason)
    apart = time["MultiplyThenAdd"] / time["Fma"]
    assert 0.95 < apart < 2.1
    dearer = time["Fma"] / time["Add"]
    reason = "an FMA reads three registers here, an addition one and a literal: on Hopper it is issued half as often"
    claim.refuted("COST-04", dearer, holds=abs(dearer - 1) <= 0.05, reason=reason)
