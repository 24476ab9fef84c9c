"""Six ways to evaluate a polynomial, each with fewer or more independent instructions.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import counters
import numpy as np
import ptx_counts
import pytest

SOURCE = "kernels/polynomial.cu"
NO_CONTRACTION = ("--fmad=false",)
BLOCK = 256
DEGREE = 64
EVALUATIONS = 32
COEFFICIENTS = [1 + 0.01 * k for k in range(DEGREE + 1)]
VARIANTS = ("pow_double", "pow_float", "running_power", "horner", "horner_fma", "estrin_fma")
OPERATIONS = {"running_power": (127, 64, 0), "horner": (64, 64, 0), "horner_fma": (0, 0, 64), "estrin_fma": (1, 0, 64)}
"""Multiplications, additions and fused multiply-adds of one evaluation (the first power is free)."""
OF_THE_LOOP = (1, 1, 0)
"""What stepping to the next x and adding up the values take."""
FLOPS = {
    "pow_double": None,
    "pow_float": None,
    "running_power": 191,
    "horner": 128,
    "horner_fma": 128,
    "estrin_fma": 129,
}

SCHEMES = {
    3: lambda c, x: (c[0] + c[1] * x) + (c[2] + c[3] * x) * x**2,
    4: lambda c, x: (c[0] + c[1] * x) + (c[2] + c[3] * x) * x**2 + c[4] * x**4,
    5: lambda c, x: (c[0] + c[1] * x) + (c[2] + c[3] * x) * x**2 + (c[4] + c[5] * x) * x**4,
    6: lambda c, x: (c[0] + c[1] * x) + (c[2] + c[3] * x) * x**2 + ((c[4] + c[5] * x) + c[6] * x**2) * x**4,
    7: lambda c, x: (
        (c[0] + c[1] * x) + (c[2] + c[3] * x) * x**2 + ((c[4] + c[5] * x) + (c[6] + c[7] * x) * x**2) * x**4
    ),
    8: lambda c, x: SCHEMES[7](c, x) + c[8] * x**8,
}
"""Estrin's scheme by degree: pairs, pairs of pairs, and so on."""


def sum_of_evaluations(x):
    """In float64, at the very x the kernel has; for NumPy and CuPy arrays of float32."""
    total = 0.0
    for _ in range(EVALUATIONS):
        wide = x.astype("float64")
        value = COEFFICIENTS[-1]
        for coefficient in reversed(COEFFICIENTS[:-1]):
            value = value * wide + coefficient
        total = total + value
        x = x * np.float32(0.96875)
    return total


def operations(counts, width=32):
    """Multiplications, additions and fused multiply-adds among instructions, of 32 or 64 bits."""

    def count(operation):
        return sum(n for name, n in counts.items() if name.startswith(f"{operation}.") and name.endswith(f".f{width}"))

    return count("mul"), count("add"), count("fma")


def launch_over(kernel, blocks, given, out):
    return kernel.launch(grid=(blocks,), block=(BLOCK,), args=(given, out, given.size))


@pytest.mark.parametrize("name", [*VARIANTS, "horner_without_cast"])
def test_values_are_right(cuda_kernel, gpu, name):
    n = 4099
    given = gpu.random(n, seed=190, low=0, high=1)
    out = gpu.zeros(n)
    launch_over(cuda_kernel(SOURCE, name, options=NO_CONTRACTION), 3, given, out)()
    np.testing.assert_allclose(gpu.to_host(out), sum_of_evaluations(gpu.to_host(given)), rtol=5e-6)


def test_estrins_identities(claim):
    """A scheme is linear in its coefficients, and n + 1 points settle a polynomial of degree n: this is a proof."""

    def is_identity(degree, scheme):
        units = [[int(k == power) for k in range(degree + 1)] for power in range(degree + 1)]
        points = range(degree + 1)
        return all(scheme(unit, x) == x**power for power, unit in enumerate(units) for x in points)

    claim("POLY-10", sum(is_identity(degree, scheme) for degree, scheme in SCHEMES.items()))


def test_each_step_has_its_instructions(cuda_kernel, claim):
    kernels = {name: cuda_kernel(SOURCE, name, options=NO_CONTRACTION) for name in VARIANTS}
    counts = {name: ptx_counts.instructions(kernel) for name, kernel in kernels.items()}
    for name, expected in OPERATIONS.items():
        whole = tuple(own + loop for own, loop in zip(expected, OF_THE_LOOP, strict=True))
        assert operations(counts[name]) == whole
    multiplications, additions, _ = operations(counts["pow_double"], width=64)
    assert min(multiplications, additions) >= DEGREE
    assert operations(counts["pow_float"])[2] > 5 * DEGREE
    assert operations(counts["pow_float"], width=64) == (0, 0, 0)

    profiles = {name: tuple(kernel.profiles.values()) for name, kernel in kernels.items()}
    assert all(profile.registers <= 24 for name in VARIANTS[1:] for profile in profiles[name])
    assert {profile.stack_bytes for each in profiles.values() for profile in each} == {0}
    totals = {name: sum(ptx_counts.floating_point(kernel).values()) for name, kernel in kernels.items()}
    claim("POLY-08", totals["horner"] / totals["running_power"])


def test_cast_keeps_double_out(cuda_kernel, claim):
    names = ("horner", "horner_without_cast", "horner_of_double")
    cast, no_cast, double = (
        ptx_counts.instructions(cuda_kernel(SOURCE, name, options=NO_CONTRACTION)) for name in names
    )
    assert sum(operations(no_cast, width=64)) > DEGREE / 2
    assert operations(double, width=64) == operations(cast)
    claim("POLY-12", sum(count for name, count in cast.items() if "f64" in name))


@pytest.mark.gpuperf(budget_s=4.0, cache="warm")
def test_steps_from_pow_to_fma(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name, options=NO_CONTRACTION) for name in VARIANTS}
    measure = measuring(gpu, gpuperf, n=2**20)
    runs = [measure(kernel, name, flops_per_evaluation=FLOPS[name]) for name, kernel in kernels.items()]
    slowest, literals, powers, horner, fma, estrin = (run.time_ns for run in runs)
    claim("POLY-02", slowest / literals)
    claim("POLY-03", slowest / powers)
    claim("POLY-04", slowest / horner)
    claim("POLY-05", slowest / fma)
    if gpu.slug == "nvidia-h200":
        assert estrin == pytest.approx(fma, rel=0.05)


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_independent_work_or_more_blocks(cuda_kernel, gpu, gpuperf, claim):
    fma, estrin = (cuda_kernel(SOURCE, name, options=NO_CONTRACTION) for name in ("horner_fma", "estrin_fma"))
    measure = measuring(gpu, gpuperf, n=2**22)
    fma_of_8 = measure(fma, "Horner, 8 blocks per SM", 128, blocks_per_sm=8)
    fma_of_1 = measure(fma, "Horner, 1 block per SM", 128, blocks_per_sm=1)
    estrin_of_8 = measure(estrin, "Estrin, 8 blocks per SM", 129, blocks_per_sm=8)
    estrin_of_1 = measure(estrin, "Estrin, 1 block per SM", 129, blocks_per_sm=1)

    def issue_rate_of_horner():
        assert counters.stall(fma_of_1, "wait") >= counters.longest_stall(fma_of_1)
        return counters.issue_rate(fma_of_1)

    claim("POLY-13", lambda: counters.issue_rate(estrin_of_1), because=[issue_rate_of_horner])
    claim("POLY-06", fma_of_1.time_ns / fma_of_8.time_ns)
    claim("POLY-07", estrin_of_1.time_ns / estrin_of_8.time_ns)
    claim("POLY-14", fma_of_1.time_ns / estrin_of_1.time_ns)
    # The control: with warps enough to hide the latency, the second chain gains nothing.
    claim("POLY-15", fma_of_8.time_ns / estrin_of_8.time_ns)
    claim("POLY-11", fma_of_8.flops / gpu.fma_throughput)


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_contraction_makes_horner_use_fma(cuda_kernel, gpu, gpuperf, claim):
    horner, fma = cuda_kernel(SOURCE, "horner"), cuda_kernel(SOURCE, "horner_fma")
    equal = [horner.profiles[arch].code_hash == fma.profiles[arch].code_hash for arch in horner.profiles]
    claim("POLY-09", np.mean(equal))
    measure = measuring(gpu, gpuperf, n=2**22)
    contracted, explicit = measure(horner, "horner", 128), measure(fma, "horner_fma", 128)
    assert contracted.time_ns == pytest.approx(explicit.time_ns, rel=0.03)


def measuring(gpu, gpuperf, n):
    """A function that measures and checks a kernel on n elements."""
    given = gpu.random(n, seed=191, low=0, high=1)
    expected = functools.cache(lambda: sum_of_evaluations(given))

    def measure(kernel, name, flops_per_evaluation, blocks_per_sm=8):
        out = gpu.zeros(n)
        flops = None if flops_per_evaluation is None else flops_per_evaluation * EVALUATIONS * n
        launch = launch_over(kernel, blocks_per_sm * gpu.sm_count, given, out)
        check = functools.partial(assert_values, gpu, out, expected)
        return gpuperf(launch, name=name, bytes=2 * given.nbytes, flops=flops, check=check)

    return measure


def assert_values(gpu, out, expected):
    gpu.assert_allclose(out, expected(), rtol=5e-6)
