"""Functions in hardware against functions in software: precision is paid for in instructions.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools
from fractions import Fraction

import numpy as np
import ptx_counts
import pytest
from launching import blocks_over

SOURCE = "kernels/expf_intrinsics.cu"
BLOCK = 256
REFERENCES = {
    "Expf": (np.exp, -10, 10),
    "Sinf": (np.sin, -np.pi, np.pi),
    "Cosf": (np.cos, -np.pi, np.pi),
    "Reciprocal": (np.reciprocal, 0.1, 10),
    "RoundedReciprocal": (np.reciprocal, 0.1, 10),
    "Root": (np.sqrt, 0.1, 10),
    "RoundedRoot": (np.sqrt, 0.1, 10),
    "TimesDouble": (lambda x: x * 3.14, -10, 10),
    "TimesFloat": (lambda x: x * 3.14, -10, 10),
}
"""Function in float64, and where it is tried."""
CHAIN = 512


def applying(cuda_kernel, function, options=()):
    return cuda_kernel(SOURCE, "apply", name_expression=f"apply<{function}>", options=options)


def chain_of(cuda_kernel, function, options=()):
    return cuda_kernel(SOURCE, "chain", name_expression=f"chain<{function}>", options=options)


def launch_over(kernel, given, out):
    return kernel.launch(grid=(blocks_over(given.size, BLOCK),), block=(BLOCK,), args=(given, out, given.size))


def applied(kernel, gpu, low, high, n=100_003):
    """Inputs and results as float64."""
    given = gpu.random(n, seed=150, low=low, high=high)
    out = gpu.empty_like(given)
    launch_over(kernel, given, out)()
    return gpu.to_host(given).astype(np.float64), gpu.to_host(out).astype(np.float64)


def links(start):
    """The chain in float64: each link halves the distance to the end, so that an eighth of them is as good as all."""
    start = start.astype("float64")
    x = start
    for _ in range(CHAIN // 8):
        x = start - 0.5 * np.exp(x)
    return x


@pytest.mark.parametrize("function", REFERENCES)
def test_functions_are_right(cuda_kernel, gpu, function):
    reference, low, high = REFERENCES[function]
    x, found = applied(applying(cuda_kernel, function), gpu, low, high)
    np.testing.assert_allclose(found, reference(x), rtol=3e-7, atol=1.5e-7 if function in ("Sinf", "Cosf") else 0)


@pytest.mark.parametrize("options", [(), ("--use_fast_math",)], ids=["accurate", "fast"])
@pytest.mark.parametrize("function", ["Expf", "FastExpf"])
def test_chain_is_right(cuda_kernel, gpu, function, options):
    given = gpu.random(10_007, seed=151, low=-1, high=0)
    out = gpu.empty_like(given)
    launch_over(chain_of(cuda_kernel, function, options), given, out)()
    np.testing.assert_allclose(gpu.to_host(out), links(gpu.to_host(given)), rtol=2e-6)


def test_instructions_of_functions(cuda_kernel, claim):
    names = ("Expf", "FastExpf", "Sinf", "FastSinf", "Cosf", "FastCosf", "TimesDouble", "TimesFloat")
    kernels = {name: applying(cuda_kernel, name) for name in names}
    counts = {name: ptx_counts.floating_point(kernel) for name, kernel in kernels.items()}
    assert sum(counts["FastSinf"].values()) == sum(counts["FastCosf"].values()) == 1
    claim("EXP-01", sum(counts["FastExpf"].values()))
    claim("EXP-08", sum(counts["Expf"].values()))
    fast = applying(cuda_kernel, "Expf", ("--use_fast_math",))
    assert ptx_counts.floating_point(fast) == counts["FastExpf"]

    # Far from zero, a sine divides by 2 pi with a table in local memory and a little double precision.
    on_the_stack = [name for name in ("Sinf", "Cosf") if ".local" in kernels[name].ptx()]
    assert all(any("f64" in opcode for opcode in counts[name]) for name in on_the_stack)
    assert {profile.stack_bytes for profile in kernels["Sinf"].profiles.values()} == {0}  # then registers suffice
    claim("EXP-06", len(on_the_stack))
    claim("EXP-10", min(sum(n for opcode, n in counts[name].items() if "f64" in opcode) for name in ("Sinf", "Cosf")))

    assert not any("f64" in opcode for opcode in counts["TimesFloat"])
    claim("EXP-07", sum(n for opcode, n in counts["TimesDouble"].items() if "f64" in opcode))

    for plain, rounded in (("Reciprocal", "RoundedReciprocal"), ("Root", "RoundedRoot")):
        code = [{p.code_hash for p in applying(cuda_kernel, name).profiles.values()} for name in (plain, rounded)]
        assert code[0] == code[1]


def test_errors_of_intrinsics(cuda_kernel, gpu, claim):
    exp, sin, cos = (applying(cuda_kernel, name) for name in ("FastExpf", "FastSinf", "FastCosf"))
    x, found = applied(exp, gpu, -10, 10)
    ulp = np.spacing(np.exp(x).astype(np.float32)).astype(np.float64)
    of_the_bound = np.abs(found - np.exp(x)) / ulp / (2 + np.floor(np.abs(1.173 * x)))
    claim("EXP-02", of_the_bound.max())

    x, found = applied(sin, gpu, -np.pi, np.pi)
    claim("EXP-03", np.abs(found - np.sin(x)).max() / 2**-21.41)
    x, found = applied(cos, gpu, -np.pi, np.pi)
    claim("EXP-09", np.abs(found - np.cos(x)).max() / 2**-21.19)


def test_fma_rounds_as_told(cuda_kernel, gpu, claim):
    n = 4099
    factors = [gpu.random(n, seed=seed, low=-2, high=2) for seed in (152, 153, 154)]
    out = gpu.empty((n, 4))
    kernel = cuda_kernel(SOURCE, "fma_in_four_modes")
    kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=(*factors, out, n))()
    a, b, c = (gpu.to_host(factor).tolist() for factor in factors)
    claim("EXP-04", np.mean([is_rounded_as_told(*row) for row in zip(a, b, c, gpu.to_host(out), strict=True)]))


def is_rounded_as_told(a, b, c, modes):
    """Whether to nearest, towards zero, up and down are what they say, in exact arithmetic."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    below = np.float32(float(exact))
    if Fraction(float(below)) > exact:
        below = np.nextafter(below, np.float32(-np.inf))
    above = below if Fraction(float(below)) == exact else np.nextafter(below, np.float32(np.inf))
    assert Fraction(float(below)) <= exact <= Fraction(float(above))
    nearest, to_zero, up, down = modes
    to_below, to_above = exact - Fraction(float(below)), Fraction(float(above)) - exact
    right = (nearest in (below, above)) if to_below == to_above else nearest == (below, above)[to_above < to_below]
    return bool(right) and (up, down) == (above, below) and to_zero == (below if exact > 0 else above)


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_chain_of_exponentials(cuda_kernel, gpu, gpuperf, claim):
    accurate, intrinsic = chain_of(cuda_kernel, "Expf"), chain_of(cuda_kernel, "FastExpf")
    option = chain_of(cuda_kernel, "Expf", ("--use_fast_math",))
    differing = [arch for arch in option.profiles if option.profiles[arch].opcodes != intrinsic.profiles[arch].opcodes]
    assert not differing

    def measuring(n, size):
        given = gpu.random(n, seed=155, low=-1, high=0)
        expected = functools.cache(lambda: links(given))

        def measure(name, kernel):
            out = gpu.empty_like(given)
            return gpuperf(
                launch_over(kernel, given, out),
                name=f"{name}, {size}",
                bytes=2 * given.nbytes,
                check=lambda: gpu.assert_allclose(out, expected(), rtol=2e-6),
            )

        return measure

    few, full = measuring(BLOCK * gpu.sm_count, "one block per SM"), measuring(2**22, "full")
    waiting, waiting_less = few("expf", accurate), few("__expf", intrinsic)
    issuing, issuing_less = full("expf", accurate), full("__expf", intrinsic)

    # A full GPU has 8 cycles of MUFU in either version, and expf's 10 instructions take not many more.
    latency, throughput = waiting.time_ns / waiting_less.time_ns, issuing.time_ns / issuing_less.time_ns
    claim("EXP-05", throughput)
    if gpu.slug == "nvidia-h200":
        # The control: with one block per SM it is not MUFU that is busy, and all of the longer chain is seen.
        assert latency > 1.3 * throughput
