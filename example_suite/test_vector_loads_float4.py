"""Wider loads: the same bytes with a quarter of the instructions, and four times the bytes in flight per thread.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and R. Bourgeois, "Five basic
performance advice for porting kernels to the GPU".
"""

import functools

import counters
import numpy as np
import ptx_counts
import pytest
from launching import blocks_over
from rules_of_thumb import on_the_right_sides

SOURCE = "kernels/vector_loads_float4.cu"
ELEMENTS = ("float", "float2", "float4")
BLOCK = 256
COEFFICIENTS = 1024
FACTOR = 2.5


def of_type(cuda_kernel, name, element):
    return cuda_kernel(SOURCE, name, name_expression=f"{name}<{element}>")


def in_a_grid_stride(kernel, blocks, arrays, *numbers):
    """A launch over arrays of a whole number of elements."""
    return kernel.launch(grid=(blocks,), block=(BLOCK,), args=(*arrays, *numbers, arrays[0].size))


def by_horner(kernel, x, coefficients, out):
    return kernel.launch(grid=(blocks_over(x.size, BLOCK),), block=(BLOCK,), args=(x, coefficients, out, x.size))


def polynomial(x, coefficients):
    """In float64; for NumPy and CuPy arrays."""
    x = x.astype("float64")
    value = x * 0
    for coefficient in coefficients:
        value = value * x + float(coefficient)
    return value


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_element_arrives(cuda_kernel, gpu, element):
    x, y = (gpu.random(100_004, seed=seed, low=-1, high=1) for seed in (210, 211))
    arguments = {"copy": ((x,), ()), "scale": ((x,), (np.float32(FACTOR),)), "axpy": ((x, y), (np.float32(FACTOR),))}
    outs = {name: gpu.empty(x.size) for name in arguments}
    launches = [
        in_a_grid_stride(of_type(cuda_kernel, name, element), 7, (*arrays, outs[name]), *numbers)
        for name, (arrays, numbers) in arguments.items()
    ]
    for launch in launches:
        launch()
    exact_x, exact_y = (gpu.to_host(array).astype(np.float64) for array in (x, y))
    np.testing.assert_array_equal(gpu.to_host(outs["copy"]), gpu.to_host(x))
    np.testing.assert_allclose(gpu.to_host(outs["scale"]), FACTOR * exact_x, rtol=1e-6)
    np.testing.assert_allclose(gpu.to_host(outs["axpy"]), FACTOR * exact_x + exact_y, rtol=1e-6, atol=2e-7)


@pytest.mark.parametrize("element", ["float", "float4"])
def test_polynomial_is_right(cuda_kernel, gpu, element):
    coefficients = np.random.default_rng(212).uniform(-1, 1, COEFFICIENTS).astype(np.float32)
    x = gpu.random(10_007, seed=213, low=-1, high=1)
    out = gpu.empty(x.size)
    kernels = {name: of_type(cuda_kernel, name, element) for name in ("horner_from_shared", "horner_from_global")}
    for name, kernel in kernels.items():
        by_horner(kernel, x, gpu.array(coefficients), out)()
        np.testing.assert_allclose(
            gpu.to_host(out), polynomial(gpu.to_host(x), coefficients), rtol=1e-4, atol=1e-4, err_msg=name
        )


def test_width_of_loads(cuda_kernel, claim):
    loads = {}
    for element in ELEMENTS:
        kernel = of_type(cuda_kernel, "copy", element)
        found = ptx_counts.instructions(kernel)
        (loads[element],) = (name for name in found if name.startswith("ld.global"))
        assert {profile.opcodes["global_load"] for profile in kernel.profiles.values()} == {1}
    bits = {load: 32 * sum(width * (f".v{width}." in load) for width in (2, 4)) or 32 for load in loads.values()}
    assert [bits[loads[element]] for element in ELEMENTS[:2]] == [32, 64]
    claim("VEC-04", bits[loads["float4"]])


@pytest.mark.gpuperf(budget_s=0.35)
def test_gain_of_wide_loads(cuda_kernel, gpu, gpuperf, claim):
    src = gpu.random(2**26, seed=214)

    def copying(element, blocks_per_sm):
        dst = gpu.empty(src.size)
        kernel = of_type(cuda_kernel, "copy", element)
        return gpuperf(
            in_a_grid_stride(kernel, blocks_per_sm * gpu.sm_count, (src, dst)),
            name=f"copy of {element}, {8 * blocks_per_sm} warps per SM",
            bytes=2 * src.nbytes,
            check=lambda: gpu.assert_equal(dst, src),
        )

    coefficients = np.random.default_rng(215).uniform(-1, 1, COEFFICIENTS).astype(np.float32)
    x = gpu.random(2**20, seed=216, low=-1, high=1)
    staged = gpu.array(coefficients)
    expected = functools.cache(lambda: polynomial(x, coefficients))

    def evaluating(element, name="horner_from_shared"):
        out = gpu.empty(x.size)
        return gpuperf(
            by_horner(of_type(cuda_kernel, name, element), x, staged, out),
            name=f"{name}<{element}>",
            flops=2 * COEFFICIENTS * x.size,
            cache="warm",
            check=lambda: gpu.assert_allclose(out, expected(), rtol=1e-4, atol=1e-4),
        )

    scalar, wide = evaluating("float"), evaluating("float4")
    full = {element: copying(element, 8) for element in ELEMENTS}
    few_warps = {element: copying(element, 1) for element in ("float", "float4")}

    throttled, relieved = (evaluating(element, "horner_from_global") for element in ("float", "float4"))

    assert_what_counters_say(full, claim)
    claim("VEC-05", lambda: counters.instructions(wide) / counters.instructions(scalar))
    claim(
        "VEC-03",
        lambda: counters.stall(relieved, "lg_throttle") / counters.stall(throttled, "lg_throttle"),
        because=[lambda: counters.l1_throughput(throttled), lambda: counters.l1_throughput(relieved)],
    )
    assert_rules_of_thumb(wide, few_warps["float"], full["float4"], claim)
    claim("VEC-02", scalar.time_ns / wide.time_ns)
    if gpu.slug == "nvidia-h200":
        # What counts is bytes in flight: with one load per thread, even a full SM has too few of 4 bytes.
        assert full["float4"].bandwidth >= 0.75 * gpu.copy_bandwidth
        assert few_warps["float"].time_ns / few_warps["float4"].time_ns >= 1.5
        # The control: with as many bytes on their way as the memory needs, there is nothing left to gain.
        assert full["float2"].time_ns < 1.06 * full["float4"].time_ns


def assert_what_counters_say(copies, claim):
    scalar, wide = copies["float"], copies["float4"]

    def fewer_loads():
        assert counters.sectors(scalar, "ld") == counters.sectors(wide, "ld")
        assert [counters.sectors_per_request(each, "ld") for each in (scalar, wide)] == [4, 16]
        return counters.memory_instructions(scalar, "global", "ld") / counters.memory_instructions(wide, "global", "ld")

    claim("VEC-01", fewer_loads)


def assert_rules_of_thumb(computing, waiting, streaming, claim):
    def on_memory(run):
        """Share of the time that warps spend on it."""
        return counters.stall_share(run, "long_scoreboard") + counters.stall_share(run, "lg_throttle")

    claim(
        "THR-02",
        lambda: on_the_right_sides(
            counters.dram_throughput(streaming), counters.dram_throughput(waiting), good_beyond=60, poor_beyond=20
        ),
    )
    claim(
        "THR-05",
        lambda: on_the_right_sides(on_memory(computing), on_memory(waiting), good_beyond=0.3, poor_beyond=0.5),
    )
