"""How much the L2 fetches when 32 bytes are asked for, and when the rest of it is of use.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import contextlib
import functools
import math

import counters
import numpy as np
import pytest
import sass_counts
from launching import blocks_over

SOURCE = "kernels/l2_fetch_granularity.cu"
BLOCK = 256
PARTICLES_OF_A_BLOCK = BLOCK // 2 * 4
RECORD = 8
"""Floats: a sector."""
LIMIT = 5
"""``cudaLimitMaxL2FetchGranularity``"""
SIZES = (32, 64, 128)
"""That the limit takes, bytes."""
AT_ONCE = {"the sector": 0, "the line": 128}
"""What a load asks the L2 to fetch, by the template argument that says so; 0 leaves it to the limit."""


def z_order(x, y, z, bits):
    """Number of a cell along a Z-order curve: the bits of its coordinates by turns; for NumPy and CuPy arrays."""
    code = 0 * x
    for bit in range(bits):
        for axis, part in enumerate((x, y, z)):
            code |= (part >> bit & 1) << (3 * bit + axis)
    return code


@contextlib.contextmanager
def fetch_granularity(gpu, size):
    """The device's limit set to ``size``; yields what the driver made of it, and sets it back."""
    if not gpu.available:
        yield size
        return
    from cupy.cuda import runtime

    before = runtime.deviceGetLimit(LIMIT)
    runtime.deviceSetLimit(LIMIT, size)
    try:
        yield runtime.deviceGetLimit(LIMIT)
    finally:
        runtime.deviceSetLimit(LIMIT, before)


def gather(cuda_kernel, fetched):
    return cuda_kernel(SOURCE, "gather", name_expression=f"gather<{AT_ONCE[fetched]}>")


def launch_over(kernel, out, records, cell_of):
    blocks = blocks_over(cell_of.size, PARTICLES_OF_A_BLOCK)
    return kernel.launch(grid=(blocks,), block=(BLOCK,), args=(out, records, cell_of, cell_of.size))


def test_neighbours_in_z_order():
    x, y, z = np.meshgrid(*3 * [np.arange(8)], indexing="ij")
    codes = z_order(x, y, z, bits=3)
    assert sorted(codes.ravel()) == list(range(512))
    assert sorted(codes[2:4, 4:6, 6:8].ravel()) == list(range(codes[2, 4, 6], codes[2, 4, 6] + 8))


@pytest.mark.parametrize("fetched", AT_ONCE)
@pytest.mark.parametrize("size", SIZES)
def test_sums_are_right(cuda_kernel, gpu, fetched, size):
    cells, particles = 4099, 2 * PARTICLES_OF_A_BLOCK + 37
    records = gpu.random((cells, RECORD), seed=400)
    cell_of = gpu.random(particles, "int32", seed=401, low=0, high=cells)
    out = gpu.empty(particles)
    launch = launch_over(gather(cuda_kernel, fetched), out, records, cell_of)
    with fetch_granularity(gpu, size):
        launch()
        found = gpu.to_host(out)
    expected = gpu.to_host(records).astype(np.float64).sum(axis=1)[gpu.to_host(cell_of)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_limit_is_taken_and_set_back(gpu, claim):
    if not gpu.available:
        pytest.skip("asks the driver")
    from cupy.cuda import runtime

    before = runtime.deviceGetLimit(LIMIT)
    kept = 0
    for size in SIZES:
        with fetch_granularity(gpu, size) as found:
            kept += found == size
    assert runtime.deviceGetLimit(LIMIT) == before
    claim("L2G-04", kept)


@pytest.mark.gpuperf(budget_s=0.2)
def test_gathering_from_a_large_table(cuda_kernel, gpu, gpuperf, claim):
    kernels = {fetched: gather(cuda_kernel, fetched) for fetched in AT_ONCE}
    for arch in kernels["the sector"].profiles:
        assert sass_counts.count(kernels["the sector"].binaries[arch], "LDG.E.128") == 4
        assert sass_counts.count(kernels["the line"].binaries[arch], "LDG.E.LTC128B") == 4

    bits, particles = 8, 2**23
    touched = 1 - math.exp(-particles / 2 ** (3 * bits))  # of all records, at least once
    records = gpu.random((2 ** (3 * bits), RECORD), seed=402)
    orders = {name: gpu.empty(particles, "int32") for name in ("random", "Z-order")}
    if gpu.available:
        coordinates = [gpu.random(particles, "int32", seed=seed, low=0, high=2**bits) for seed in (403, 404, 405)]
        orders["random"][...] = z_order(*coordinates, bits)
        orders["Z-order"][...] = orders["random"]
        orders["Z-order"].sort()

    @functools.cache
    def sums():
        return records.sum(axis=1, dtype="float64")

    def measure(order, fetched="the sector", size=None):
        out = gpu.empty(particles)
        name = order if fetched == "the sector" else f"{order}, whole lines"
        launch = launch_over(kernels[fetched], out, records, orders[order])

        def check():
            gpu.assert_allclose(out, sums()[orders[order]], rtol=1e-6)

        declared = round(4 * records.size * touched) + 8 * particles
        if size is None:
            return gpuperf(launch, name=name, bytes=declared, check=check)
        with fetch_granularity(gpu, size):
            return gpuperf(launch, name=f"{name}, limit {size}", bytes=declared, check=check)

    random, in_order = measure("random"), measure("Z-order")
    random_lines, in_order_lines = measure("random", "the line"), measure("Z-order", "the line")
    random_32, random_128 = measure("random", size=32), measure("random", size=128)
    in_order_32, in_order_128 = measure("Z-order", size=32), measure("Z-order", size=128)

    def fetched_for_a_record(run):
        """Bytes from DRAM, without those of the particle's cell number."""
        return counters.bytes_read_from_dram(run) / particles - 4

    claim("L2G-01", lambda: fetched_for_a_record(random) / fetched_for_a_record(random_32))
    claim("L2G-02", random.time_ns / random_32.time_ns)
    claim("L2G-03", in_order_32.time_ns / in_order_128.time_ns)
    claim("L2G-05", random_lines.time_ns / random.time_ns)
    claim("L2G-06", lambda: fetched_for_a_record(random_lines) / fetched_for_a_record(random))
    claim("L2G-07", in_order_lines.time_ns / in_order.time_ns)
    claim("L2G-08", random.time_ns / in_order.time_ns)
    claim("L2G-09", lambda: fetched_for_a_record(random))
    claim("L2G-10", random_128.time_ns / random.time_ns)
    claim.not_comparable("L2G-11")
