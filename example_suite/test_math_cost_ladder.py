"""What arithmetic costs, and how to have it cheaper.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and R. Bourgeois, "Five basic
performance advice for porting kernels to the GPU".
"""

import functools

import counters
import numpy as np
import ptx_counts
import pytest
from launching import blocks_over
from operations import OPERATIONS, REMAINDERS, STEP, parameters, places, remainders, repeated

SOURCE = "kernels/math_cost_ladder.cu"
BLOCK = 256
SIZE = 37
"""Of an array in each of its dimensions."""


BOUND_BY_MEMORY = ("Divide", "Multiply")
"""The control: done once, with a number loaded and stored for each."""


def repeating(cuda_kernel, name, unrolled=None):
    unrolled = unrolled or OPERATIONS[name].unrolled
    return cuda_kernel(SOURCE, "repeat", name_expression=f"repeat<{name}, {unrolled}>")


def repeating_remainder(cuda_kernel, name):
    return cuda_kernel(SOURCE, "repeat_remainder", name_expression=f"repeat_remainder<{name}, 16>")


def launch_over(kernel, given, out, *numbers):
    return kernel.launch(
        grid=(blocks_over(given.size, BLOCK),), block=(BLOCK,), args=(given, out, *numbers, given.size)
    )


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


def test_place_is_right(cuda_kernel, gpu):
    given = gpu.random(10_007, dtype="uint32", seed=226, high=2**32)
    for rounds in (0, 1, 7):
        out = gpu.empty_like(given)
        kernel = cuda_kernel(SOURCE, "repeat_index", name_expression="repeat_index<1>")
        launch_over(kernel, given, out, np.uint32(SIZE), rounds)()
        np.testing.assert_array_equal(gpu.to_host(out), places(gpu.to_host(given), SIZE, rounds))


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
    claim("COST-05", np.count_nonzero(fused != separate))


def test_instructions(cuda_kernel, claim):
    double, single = repeating(cuda_kernel, "DoubleLiteral"), repeating(cuda_kernel, "FloatLiteral")
    assert fp64(single) == 0
    claim("COST-06", fp64(double))
    # Unrolled 128 times, and yet a single exponential.
    assert {profile.opcodes["mufu"] for profile in repeating(cuda_kernel, "ConstantInLoop").profiles.values()} == {1}

    counts = {
        name: {arch: profile.instructions for arch, profile in repeating_remainder(cuda_kernel, name).profiles.items()}
        for name in (*REMAINDERS, "Nothing")
    }
    beyond = {name: {arch: n - counts["Nothing"][arch] for arch, n in each.items()} for name, each in counts.items()}
    assert all(beyond["RemainderBy8"][arch] < beyond["RemainderBy7"][arch] for arch in double.profiles)
    claim("COST-02", min(n / beyond["RemainderBy7"][arch] for arch, n in beyond["Remainder"].items()))
    wide, nothing = (
        cuda_kernel(SOURCE, "once_on_64_bits", name_expression=f"once_on_64_bits<{name}>").profiles
        for name in ("RemainderOf64Bits", "NothingOf64Bits")
    )
    claim("COST-14", max(wide[arch].instructions - nothing[arch].instructions for arch in wide))

    template, run_time = (kernel.profiles for kernel in power_kernels(cuda_kernel))
    # Of instructions, that is: both kernels get by with a dozen registers, one or two more or less.
    assert max(profile.registers for each in (template, run_time) for profile in each.values()) <= 16
    claim("COST-09", max(template[arch].instructions / run_time[arch].instructions for arch in template))


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

    def measure_once(name):
        many = gpu.random(2**24, seed=227, low=1, high=2)
        out = gpu.empty_like(many)
        launch = launch_over(repeating(cuda_kernel, name), many, out, *parameters(name), 1)
        check = functools.partial(assert_done_once, gpu, name, many, out)
        return gpuperf(launch, name=f"{name} once", bytes=2 * many.nbytes, cache="cold", check=check)

    def measure_index():
        out = gpu.empty_like(integers)

        def check():
            expected = places(gpu.to_host(integers)[::sample], SIZE, rounds)
            np.testing.assert_array_equal(gpu.to_host(out)[::sample], expected)

        kernel = cuda_kernel(SOURCE, "repeat_index", name_expression="repeat_index<1>")
        assert {profile.opcodes.get("fp32", 0) for profile in kernel.profiles.values()} == {0}
        return gpuperf(launch_over(kernel, integers, out, np.uint32(SIZE), rounds), name="index", check=check)

    timed = [name for name in OPERATIONS if name not in ("DivideByConstant", "ConstantInLoop")]
    runs = {name: measure(name) for name in timed}
    runs |= {name: measure_remainder(name) for name in ("Remainder", "RemainderBy7")}
    rolled_up = measure("Fma", unrolled=1)

    index = measure_index()
    once = {name: measure_once(name) for name in BOUND_BY_MEMORY}

    def special_instructions(name):
        return counters.special_instructions(runs[name]) / (n / 32 * rounds)

    def fma_against_other_pipes():
        """All that the FMA pipe has here is IMAD."""
        others = max(counters.pipe_busy(index, pipe) for pipe in counters.PIPES if pipe != "fma")
        return counters.pipe_busy(index, "fma") / others

    def waiting_against_other_stalls():
        return counters.stall(rolled_up, "wait") / counters.longest_stall(rolled_up, "wait")

    claim("COST-18", waiting_against_other_stalls)
    claim("COST-07", fma_against_other_pipes)
    time = {name: run.time_ns for name, run in runs.items()}
    claim(
        "COST-10",
        lambda: time["Root"] / time["Divide"],
        because=[lambda: special_instructions("Root"), lambda: special_instructions("Divide")],
    )
    assert_what_the_talks_say(time, claim)
    claim("COST-19", rolled_up.time_ns / time["Fma"])
    if gpu.slug == "nvidia-h200":
        # The control: where memory sets the pace, a division costs nothing.
        assert once["Divide"].time_ns < 1.1 * once["Multiply"].time_ns


def assert_done_once(gpu, name, given, out):
    gpu.assert_allclose(out, repeated(name, given, 1), rtol=1e-6)


def assert_what_the_talks_say(time, claim):
    """``time`` is in nanoseconds by operation."""
    claim("COST-01", time["Sine"] / time["Divide"])
    claim("COST-11", time["Sine"] / time["Remainder"])
    claim("COST-12", time["Root"] / time["Remainder"])
    claim("COST-13", time["Remainder"] / time["Multiply"])
    claim("COST-03", time["Divide"] / time["Multiply"])
    claim("COST-08", time["Quotient"] / time["Product"])
    assert time["DoubleLiteral"] > 1.3 * time["FloatLiteral"]
    assert time["Remainder"] > time["RemainderBy7"]
    # With literals, as the talk's polynomial has them; three registers are another matter.
    claim("COST-04", time["FloatLiteral"] / time["Add"], because=[time["Fma"] / time["Add"]])
    claim("COST-15", time["FloatLiteral"] / time["Multiply"])
    claim("COST-16", time["MultiplyThenAdd"] / time["FloatLiteral"])
    claim("COST-17", time["Multiply"] / time["Add"])
