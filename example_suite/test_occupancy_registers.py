"""Registers per thread, and what a limit on them does.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools
import itertools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/occupancy_registers.cu"
LENGTH = 128
"""Values that a thread keeps."""
BLOCK = 128
CAPS = (255, 128, 96, 64, 48, 32)
"""Registers per thread at most; 255 is all that the hardware has, and no limit here."""
FEW = 8
"""Values that fit under the lowest cap."""


def two_passes(cuda_kernel, cap=255, length=LENGTH, dtype="float"):
    options = () if cap == 255 else (f"-maxrregcount={cap}",)
    return cuda_kernel(SOURCE, "two_passes", name_expression=f"two_passes<{dtype}, {length}>", options=options)


def launch_over(kernel, given, out, block=BLOCK):
    return kernel.launch(grid=(blocks_over(out.size, block),), block=(block,), args=(given, out, out.size))


def folded(given):
    """Both passes over the first axis, in float64; for NumPy and CuPy arrays."""
    s = 0 * given[0].astype("float64")
    for values in given:
        s = s * 0.5 + values
    r = s
    for values in given[::-1]:
        r = r * 0.25 + values * s
    return r


@pytest.mark.parametrize("cap", CAPS)
def test_folds_under_a_cap_are_right(cuda_kernel, gpu, cap):
    check_folds(two_passes(cuda_kernel, cap), gpu, "float32")


def test_folds_are_right(cuda_kernel, gpu):
    kernels = [cuda_kernel(SOURCE, name) for name in ("two_passes_bounded", "two_passes_capped")]
    of_doubles = two_passes(cuda_kernel, length=32, dtype="double")
    for kernel in kernels:
        check_folds(kernel, gpu, "float32")
    check_folds(of_doubles, gpu, "float64", length=32, rtol=1e-14)


def check_folds(kernel, gpu, dtype, length=LENGTH, rtol=2e-6):
    given = np.random.default_rng(110).uniform(0.5, 1.5, (length, 1003))
    out = gpu.zeros(given.shape[1], dtype=dtype)
    launch_over(kernel, gpu.array(given.astype(dtype)), out)()
    np.testing.assert_allclose(gpu.to_host(out), folded(given.astype(dtype)), rtol=rtol)


def spill_bytes(profile):
    return profile.spill_store_bytes + profile.spill_load_bytes


def test_registers_and_what_fits(cuda_kernel, gpu, claim):
    given, out = gpu.empty((LENGTH, 1024)), gpu.empty(1024)
    free, slide, capped = (two_passes(cuda_kernel, cap) for cap in (255, 63, 64))
    by_attribute = cuda_kernel(SOURCE, "two_passes_capped").profiles
    bounded = cuda_kernel(SOURCE, "two_passes_bounded").profiles

    for arch in free.profiles.keys() & {"sm_80", "sm_90"}:
        found = launch_over(slide, given, out).occupancy[arch]
        assert (slide.profiles[arch].registers, found.blocks_per_sm, found.limiter) == (63, 8, "registers")
        assert bounded[arch].registers == 32
        assert spill_bytes(bounded[arch]) > spill_bytes(capped.profiles[arch])
    if "sm_90" in free.profiles:
        claim("OCR-01", 100 * launch_over(slide, given, out).occupancy["sm_90"].fraction)

    for arch, profile in free.profiles.items():
        assert profile.registers > LENGTH
        assert spill_bytes(profile) == 0
        assert (by_attribute[arch].registers, spill_bytes(by_attribute[arch])) == (
            64, spill_bytes(capped.profiles[arch]),
        )  # fmt: skip
    claim("OCR-02", min(spill_bytes(profile) for profile in capped.profiles.values()))

    def registers_per_value(dtype):
        """From 32 values to 96, all of which are kept."""
        more, fewer = (two_passes(cuda_kernel, length=length, dtype=dtype).profiles for length in (96, 32))
        return min((more[arch].registers - fewer[arch].registers) / 64 for arch in more)

    claim("OCR-05", registers_per_value("double"))
    assert registers_per_value("float") == pytest.approx(1, abs=0.15)


def test_a_limit_that_is_not_reached_changes_nothing(cuda_kernel):
    """The control: with few values to keep, the lowest cap spills nothing."""
    free, capped = (two_passes(cuda_kernel, cap, length=FEW).profiles for cap in (255, 32))
    for arch, profile in free.items():
        assert profile.registers <= 32
        assert (spill_bytes(capped[arch]), capped[arch].opcodes) == (0, profile.opcodes)


@pytest.mark.gpuperf(budget_s=0.6)
def test_limits_on_registers(cuda_kernel, gpu, gpuperf, claim):
    """What a cap costs is the spilling: the same cap is free where it spills nothing."""
    n = 2**19
    given = gpu.random((LENGTH, n), seed=111, low=0.5, high=1.5)

    in_short = given.reshape(FEW, -1)

    @functools.cache
    def expected(length):
        return folded(given if length == LENGTH else in_short)

    def measure(cap, values=given, name="at most {} registers"):
        length, threads = values.shape
        out = gpu.zeros(threads)
        return gpuperf(
            launch_over(two_passes(cuda_kernel, cap, length), values, out),
            name=name.format(cap),
            bytes=values.nbytes + out.nbytes,
            flops=5 * values.size,
            check=lambda: gpu.assert_allclose(out, expected(length), rtol=1e-5),
        )

    runs = {cap: measure(cap) for cap in CAPS}
    assert runs[255].spill_bytes == 0
    assert all(runs[more].spill_bytes < runs[less].spill_bytes for more, less in itertools.pairwise(CAPS))
    free, capped = (measure(cap, in_short, f"{FEW} values, at most {{}} registers") for cap in (255, 32))

    def dram_bytes_of_spilling():
        return counters.dram_bytes(runs[32]) / counters.dram_bytes(runs[255])

    claim.not_comparable("OCR-03")
    claim("OCR-04", dram_bytes_of_spilling)
    time = {cap: run.time_ns for cap, run in runs.items()}
    claim("OCR-07", time[32] / time[255], because=[capped.time_ns / free.time_ns])
    claim("OCR-06", time[128] / time[255])
