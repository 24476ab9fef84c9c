"""Registers per thread, and what a limit on them does.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/occupancy_registers.cu"


def two_passes(cuda_kernel, cap, length, dtype="float"):
    options = () if cap == 255 else (f"-maxrregcount={cap}",)  # 255 are all that the hardware has
    return cuda_kernel(SOURCE, "two_passes", name_expression=f"two_passes<{dtype}, {length}>", options=options)


def launch_over(kernel, given, out):
    return kernel.launch(grid=-(-out.size // 128), block=128, args=(given, out, out.size))


def folded(given):
    """Both passes over the first axis, in float64."""
    s = functools.reduce(lambda s, value: s * 0.5 + value, given.astype("float64"))
    return functools.reduce(lambda r, value: r * 0.25 + value * s, given[::-1], s)


def test_folds_are_right(cuda_kernel, gpu):
    given = np.random.default_rng(110).uniform(0.5, 1.5, (128, 1003)).astype(np.float32)
    names = ("two_passes_bounded", "two_passes_capped")
    for kernel in [cuda_kernel(SOURCE, name, name_expression=f"{name}<128>") for name in names]:
        out = gpu.zeros(1003)
        launch_over(kernel, gpu.array(given), out)()
        np.testing.assert_allclose(gpu.to_host(out), folded(given), rtol=2e-6, err_msg=kernel.name)


def test_registers_and_what_fits(cuda_kernel, record_property):
    few, many = (two_passes(cuda_kernel, 255, length, "double").profile.registers for length in (32, 96))
    record_property("registers per double", (many - few) / 64)
    assert many - few > 1.9 * 64


@pytest.mark.gpuperf(budget_s=0.6)
def test_limits_on_registers(cuda_kernel, gpu, gpuperf):
    given = gpu.random((128, 2**19), seed=111, low=0.5, high=1.5)

    def measure(cap, length, name):
        values = given.reshape(length, -1)
        out = gpu.zeros(values.shape[1])

        def check():
            gpu.assert_allclose(out, folded(values), rtol=1e-5)

        launch = launch_over(two_passes(cuda_kernel, cap, length), values, out)
        return gpuperf(launch, name=name, bytes=values.nbytes + out.nbytes, flops=5 * values.size, check=check)

    runs = {cap: measure(cap, 128, f"at most {cap} registers") for cap in (255, 128, 96, 64, 48, 32)}
    free, capped = (measure(cap, 8, f"8 values, at most {cap} registers") for cap in (255, 32))
    assert runs[255].spill_bytes == capped.spill_bytes == 0 < runs[128].spill_bytes
    assert runs[255].time_ns < runs[32].time_ns
    assert capped.time_ns < 1.05 * free.time_ns  # what a cap costs is the spilling
