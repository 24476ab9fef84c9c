"""Six ways to evaluate a polynomial, each with fewer or more independent instructions.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/polynomial.cu"
FLOPS = {"pow_double": 0, "pow_float": 0, "running_power": 191, "horner": 128, "horner_fma": 128, "estrin_fma": 129}
"""Of one of 32 evaluations; 0 where functions of the library make them."""


def sum_of_evaluations(x):
    """In float64, at the very x the kernel has."""
    total = 0.0
    for _ in range(32):
        wide, value = x.astype("float64"), 0.0
        for k in range(64, -1, -1):
            value = value * wide + (1 + 0.01 * k)
        total = total + value
        x = x * np.float32(0.96875)
    return total


def measuring(cuda_kernel, gpu, gpuperf, n, options=("--fmad=false",)):
    """A function that measures and checks a kernel on n elements."""
    given = gpu.random(n, seed=191, low=0, high=1)

    def measure(kernel, name, blocks_per_sm=8):
        out = gpu.zeros(n)
        return gpuperf(
            cuda_kernel(SOURCE, kernel, options=options).launch(blocks_per_sm * gpu.sm_count, 256, (given, out, n)),
            name=name,
            bytes=2 * given.nbytes,
            flops=32 * n * FLOPS[kernel] or None,
            check=lambda: gpu.assert_allclose(out, sum_of_evaluations(given), rtol=5e-6),
        )

    return measure


@pytest.mark.gpuperf(budget_s=4.0, cache="warm")
def test_steps_from_pow_to_fma(cuda_kernel, gpu, gpuperf):
    measure = measuring(cuda_kernel, gpu, gpuperf, n=2**20)
    runs = [measure(name, name) for name in FLOPS]
    double, single, powers, horner, fma, _ = (run.time_ns for run in runs)
    assert fma < horner < powers < single < double


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_independent_work_or_more_blocks(cuda_kernel, gpu, gpuperf):
    measure = measuring(cuda_kernel, gpu, gpuperf, n=2**22)
    horner_of_8, estrin_of_8, horner_of_1, estrin_of_1 = (
        measure(kernel, f"{scheme}, {blocks} block{'s' if blocks > 1 else ''} per SM", blocks)
        for blocks in (8, 1)
        for kernel, scheme in (("horner_fma", "Horner"), ("estrin_fma", "Estrin"))
    )
    # With warps enough to hide the latency, the second chain gains nothing.
    assert horner_of_1.time_ns / estrin_of_1.time_ns > 1.2 * horner_of_8.time_ns / estrin_of_8.time_ns


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_contraction_makes_horner_use_fma(cuda_kernel, gpu, gpuperf):
    measure = measuring(cuda_kernel, gpu, gpuperf, n=2**22, options=())
    runs = measure("horner", "horner"), measure("horner_fma", "horner_fma")
    contracted, explicit = ([one.profile.code_hash for one in run.static.values()] for run in runs)
    assert contracted == explicit
