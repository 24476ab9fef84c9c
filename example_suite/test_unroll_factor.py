"""How far to unroll a loop: the loop's own instructions on one side, the instruction cache on the other.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import counters
import numpy as np
import pytest

SOURCE = "kernels/unroll_factor.cu"
FACTORS = (1, 4, 16, 256, 2048, 8192)
"""Steps per round."""
LARGE = (2048, 8192)
"""The last that fits the instruction cache of an SM, and one that does not."""
BLOCK = 512
STIFFNESS = 60 / 1024
"""A step is so much of a radian; after 65 536 steps the mass passes its middle, where another step shows most."""
STEP_BYTES = 32


def swing(cuda_kernel, factor):
    return cuda_kernel(SOURCE, "swing", name_expression=f"swing<{factor}>")


def launch_over(kernel, given, out, steps):
    return kernel.launch(grid=(given.size // BLOCK,), block=(BLOCK,), args=(given, out, STIFFNESS, steps))


def place_after(steps, given):
    """Where the masses are, in float64; a step is a matrix."""
    step = np.array([[1 - STIFFNESS**2, STIFFNESS], [-STIFFNESS, 1.0]])
    return float(np.linalg.matrix_power(step, steps)[0, 0]) * given.astype("float64")


@pytest.mark.parametrize("factor", FACTORS)
def test_the_masses_are_where_they_should_be(cuda_kernel, gpu, factor):
    steps = 2 * max(FACTORS)
    given = np.random.default_rng(400).uniform(0.5, 1.5, 2 * BLOCK).astype(np.float32)
    out = gpu.zeros(given.size)
    launch_over(swing(cuda_kernel, factor), gpu.array(given), out, steps)()
    np.testing.assert_allclose(gpu.to_host(out), place_after(steps, given), rtol=0, atol=1e-3)


def test_a_step_is_so_many_bytes(cuda_kernel, claim):
    kernels = {factor: swing(cuda_kernel, factor).profiles for factor in FACTORS}
    for arch, first in kernels[1].items():
        assert kernels[max(FACTORS)][arch].registers <= first.registers + 4
    more, fewer = (kernels[factor] for factor in reversed(LARGE))
    grown = [more[arch].code_bytes - fewer[arch].code_bytes for arch in more]
    assert len(set(grown)) == 1
    claim("UF-04", grown[0] / (LARGE[1] - LARGE[0]))


@pytest.mark.gpuperf(budget_s=0.6)
def test_factors_from_one_to_beyond_the_cache(cuda_kernel, gpu, gpuperf, claim):
    steps = 8 * max(FACTORS)
    given = gpu.random(gpu.sm_count * BLOCK, seed=401, low=0.5, high=1.5)

    def measure(factor):
        out = gpu.zeros(given.size)
        return gpuperf(
            launch_over(swing(cuda_kernel, factor), given, out, steps),
            name=f"{factor} steps per round",
            flops=4 * steps * given.size,
            check=lambda: gpu.assert_allclose(out, place_after(steps, given), rtol=0, atol=1e-2),
        )

    runs = {factor: measure(factor) for factor in FACTORS}
    time = {factor: run.time_ns for factor, run in runs.items()}
    smallest, largest = FACTORS[0], FACTORS[-1]
    claim("UF-01", time[smallest] / time[256])
    claim("UF-02", time[largest] / time[2048])
    claim("UF-03", min(time[smallest], time[largest]) / min(time.values()))
    claim("UF-05", lambda: counters.instructions(runs[smallest]) / counters.instructions(runs[256]))
    claim("UF-06", lambda: counters.stall_share(runs[largest], "no_instruction"))
    claim("UF-07", lambda: counters.stall_share(runs[2048], "no_instruction"))
