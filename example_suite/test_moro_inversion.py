"""Inverting the normal distribution: calls, branches and slow divisions inside one small function.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools
import re
import subprocess

import counters
import numpy as np
import ptx_counts
import pytest
from scipy import special

from pytest_gpuperf.compile.toolkit import disassembler

SOURCE = "kernels/moro_inversion.cu"
VARIANTS = ("Inlined", "Called", "FastLog", "BothSides")
BLOCK = 128


ARCHS = ("sm_80", "sm_90", "sm_120")


def summing(cuda_kernel, variant, options=(), arch=None):
    expression = f"sum_quantiles<{variant}>"
    return cuda_kernel(SOURCE, "sum_quantiles", name_expression=expression, options=options, arch=arch)


def launch_over(kernel, numbers, out, rounds, blocks):
    return kernel.launch(grid=(blocks,), block=(BLOCK,), args=(numbers, out, numbers.size, rounds))


def sums(numbers, rounds, ndtri):
    """In float64; for NumPy and CuPy arrays with their own inverse of the normal distribution."""
    total = 0.0
    for one in range(rounds):
        total = total + ndtri(((numbers ^ np.uint32(one << 8)).astype("float64") + 0.5) / 2**32)
    return total


@pytest.mark.parametrize("variant", VARIANTS)
def test_quantiles_are_right(cuda_kernel, gpu, variant):
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], dtype=np.uint32)
    anywhere = np.random.default_rng(130).integers(2**32, size=100_003, dtype=np.uint32)
    numbers = np.concatenate([ends, anywhere])
    for rounds in (1, 3):
        out = gpu.empty(numbers.size)
        launch_over(summing(cuda_kernel, variant), gpu.array(numbers), out, rounds, blocks=100)()
        expected = sums(numbers, rounds, special.ndtri)
        tolerance = 1e-4 if variant == "FastLog" else 2e-6
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=3e-6, atol=tolerance * rounds)


def test_calls_and_registers(cuda_kernel, claim):
    inlined, called, fast = (
        summing(cuda_kernel, "Inlined", arch=ARCHS),
        summing(cuda_kernel, "Called", arch=ARCHS),
        summing(cuda_kernel, "Inlined", ("--use_fast_math",), arch=ARCHS),
    )
    calls = [
        sum(n for name, n in ptx_counts.instructions(kernel).items() if name.startswith("call"))
        for kernel in (inlined, called)
    ]
    assert calls[1] == 1
    claim("MORO-06", calls[0])
    saved = [called.profiles[arch].registers - inlined.profiles[arch].registers for arch in inlined.profiles]
    assert min(saved) >= 0
    claim("MORO-01", max(saved))

    exact = [
        sum(n for name, n in ptx_counts.instructions(kernel).items() if "div.rn" in name) for kernel in (inlined, fast)
    ]
    for arch in inlined.profiles:  # the slow path is code that fast division does not have
        assert fast.profiles[arch].opcodes["branch"] < inlined.profiles[arch].opcodes["branch"] / 2
    claim("MORO-05", exact[0] - exact[1])


def live_registers(kernel, folder):
    """Instructions in the order of the machine code, and how many registers each leaves with a value to be used."""
    file = folder / "kernel.cubin"
    file.write_bytes(kernel.binary.cubin)
    command = [disassembler().path, "-c", "--print-life-ranges", "--life-range-mode", "count", file]
    listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*//\s*\|\s*(\d*)", listing)
    return [(instruction, int(count or 0)) for instruction, count in found]


def test_where_most_registers_are_live(cuda_kernel, claim, tmp_path):
    """In the talk's version, with its fast logarithm; from the first constant of the approximation to its division."""
    lives = live_registers(summing(cuda_kernel, "FastLog"), tmp_path)
    (first,) = (place for place, (instruction, _) in enumerate(lives) if "-21.06224" in instruction)
    (last,) = (place for place, (instruction, _) in enumerate(lives) if "CALL" in instruction)
    end = max(place for place, (instruction, _) in enumerate(lives) if instruction.endswith("EXIT"))
    inside = max(count for _, count in lives[first : last + 1])
    outside = max(count for _, count in lives[:first] + lives[last + 1 : end])  # beyond is what the division calls
    claim("MORO-03", inside / outside)


@pytest.mark.gpuperf(budget_s=0.4, cache="warm")
def test_inverting_many_numbers(cuda_kernel, gpu, gpuperf, claim):
    n, rounds = 2**21, 64
    random = np.random.default_rng(131).integers(2**32, size=n, dtype=np.uint32)
    numbers = {"random": gpu.array(random), "sorted": gpu.array(np.sort(random))}
    blocks = 16 * gpu.sm_count

    @functools.cache
    def expected(order):
        from cupyx.scipy import special as on_the_gpu

        return sums(numbers[order], rounds, on_the_gpu.ndtri)

    def measure(variant, order):
        out = gpu.empty(n)
        return gpuperf(
            launch_over(summing(cuda_kernel, variant), numbers[order], out, rounds, blocks),
            name=f"{variant}, {order} numbers",
            bytes=2 * out.nbytes,
            check=lambda: gpu.assert_allclose(out, expected(order), rtol=2e-5, atol=1e-4 * rounds),
        )

    inlined, called, fast_log, both_sides = (measure(variant, "random") for variant in VARIANTS)
    without_mixed_warps = measure("Inlined", "sorted")

    def lanes_of_mixed_warps():
        """Against the control: sorted numbers, and no warp with both sides."""
        assert counters.active_lanes(without_mixed_warps) >= 31.5
        return counters.active_lanes(inlined)

    claim("MORO-04", lanes_of_mixed_warps)
    claim(
        "MORO-02",
        lambda: called.time_ns / inlined.time_ns,
        because=[lambda: counters.instructions(called) / counters.instructions(inlined)],
    )
    if gpu.slug == "nvidia-h200":
        assert inlined.time_ns / without_mixed_warps.time_ns == pytest.approx(2.11, rel=0.15)
        assert fast_log.time_ns < inlined.time_ns
        # Nearly every warp takes both sides anyway.
        assert both_sides.time_ns < 1.3 * inlined.time_ns
