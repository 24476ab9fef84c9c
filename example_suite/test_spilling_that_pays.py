"""Registers that are kept while a thread waits: spilled, or moved to shared memory, they make room for more warps.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools
import itertools

import numpy as np
import pytest
import sass_counts
from launching import blocks_over

SOURCE = "kernels/spilling_that_pays.cu"
BLOCK = 128
LANES = 8
VALUES = 96
FEW = 8
CAPS = (255, 128, 64, 40, 32, 24)
"""Registers per thread at most; 255 is all that the hardware has, and no limit here."""
RECORD_BYTES = 32


def in_registers(cuda_kernel, cap=255, values=VALUES):
    options = () if cap == 255 else (f"-maxrregcount={cap}",)
    return cuda_kernel(SOURCE, "in_registers", name_expression=f"in_registers<{values}>", options=options)


def half_in_shared(cuda_kernel):
    return cuda_kernel(SOURCE, "half_in_shared", name_expression=f"half_in_shared<{VALUES}>")


def launch_over(kernel, given, table, out, steps):
    n = out.size
    assert n % BLOCK == 0
    args = (given, table, out, table.nbytes - RECORD_BYTES, n, steps)
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=args)


def link_records(table, record):
    """Make one long cycle of all records, in an order without a pattern; for NumPy and CuPy arrays.

    ``record`` counts them.  A cycle, because chains over random links run into each other and into the caches.
    """
    table[:, 0] = (record * 1664525 + 1013904223) % len(table) * RECORD_BYTES


def results(given, table, thread, steps):
    """What the kernels compute, modulo 2^32; for NumPy and CuPy arrays of uint32.  ``thread`` counts the threads."""
    numbers = []
    number = thread
    for values in given:
        number = (number ^ values) * 2654435761 + (number >> 15)
        numbers.append(number)
    lane = thread % LANES
    start = (number & (table.nbytes - RECORD_BYTES))[thread - lane]
    record, total = start // RECORD_BYTES, 0 * number
    for _ in range(steps):
        total = total + table[record, lane]
        record = table[record, 0] // RECORD_BYTES
    result = total
    for number in numbers:
        result = result * total + number
    return result


def small(values):
    """Numbers, a table of 1024 records, and as many threads as three blocks."""
    rng = np.random.default_rng(720)
    given, table = (rng.integers(2**32, size=size, dtype=np.uint32) for size in ((values, 3 * BLOCK), (1024, LANES)))
    link_records(table, np.arange(len(table), dtype=np.uint32))
    return given, table, np.arange(3 * BLOCK, dtype=np.uint32)


def test_links_are_one_cycle():
    _, table, _ = small(FEW)
    record, visited = 0, set()
    while record not in visited:
        visited.add(record)
        record = int(table[record, 0]) // RECORD_BYTES
    assert (record, len(visited)) == (0, len(table))


@pytest.mark.parametrize("cap", CAPS)
def test_results_are_right(cuda_kernel, gpu, cap):
    for steps in (0, 1, 9):
        check_results(in_registers(cuda_kernel, cap), gpu, VALUES, steps)


def test_results_from_shared_memory_are_right(cuda_kernel, gpu):
    check_results(half_in_shared(cuda_kernel), gpu, VALUES, steps=9)


@pytest.mark.parametrize("cap", [255, 32])
def test_results_of_few_numbers_are_right(cuda_kernel, gpu, cap):
    check_results(in_registers(cuda_kernel, cap, FEW), gpu, FEW, steps=9)


def check_results(kernel, gpu, values, steps):
    given, table, thread = small(values)
    out = gpu.empty(thread.size, dtype="uint32")
    launch_over(kernel, gpu.array(given), gpu.array(table), out, steps)()
    np.testing.assert_array_equal(gpu.to_host(out), results(given, table, thread, steps))


def spill_bytes(profile):
    return profile.spill_store_bytes + profile.spill_load_bytes


def test_what_a_cap_spills_and_where(cuda_kernel, gpu, claim):
    given, table, out = (gpu.empty(shape, dtype="uint32") for shape in ((VALUES, 1024), (1024, LANES), 1024))
    kernels = {cap: in_registers(cuda_kernel, cap) for cap in CAPS}
    in_shared, few = half_in_shared(cuda_kernel), in_registers(cuda_kernel, 32, FEW)
    archs = kernels[255].profiles.keys()
    for arch in archs:
        assert [spill_bytes(kernels[cap].profiles[arch]) for cap in (255, 128)] == [0, 0]
        for more, less in itertools.pairwise(CAPS[1:]):
            assert spill_bytes(kernels[more].profiles[arch]) < spill_bytes(kernels[less].profiles[arch])
        for kernel in kernels.values() if arch in ("sm_80", "sm_90") else ():
            order = sass_counts.in_order(kernel.binaries[arch])
            first, last = (place for place, opcode in enumerate(order) if opcode.startswith("SHFL"))
            chain = [opcode.split(".")[0] for opcode in order[first : last + 1]]
            assert chain.count("LDG") == 1
            assert not {"LDL", "STL"} & {*chain}
        assert spill_bytes(in_shared.profiles[arch]) == spill_bytes(few.profiles[arch]) == 0
    if "sm_90" in archs:
        occupancy = {cap: launch_over(kernel, given, table, out, 1).occupancy["sm_90"].fraction
                     for cap, kernel in kernels.items()}  # fmt: skip
        assert list(occupancy.values()) == [0.25, 0.25, 0.5, 0.75, 1, 1]
        shared = launch_over(in_shared, given, table, out, 1).occupancy["sm_90"]
        claim("SPP-01", kernels[255].profiles["sm_90"].registers - in_shared.profiles["sm_90"].registers)
        claim("SPP-02", shared.fraction / occupancy[255])


@pytest.mark.gpuperf(budget_s=0.6)
def test_waiting_with_few_registers(cuda_kernel, gpu, gpuperf, claim):
    n, records, steps, few_steps = 132 * 2048 * 3, 2**24, 96, 2
    given = gpu.random((VALUES, n), "uint32", seed=721, low=0, high=2**32 - 1)
    table = gpu.random((records, LANES), "uint32", seed=722, low=0, high=2**32 - 1)
    thread = gpu.array(np.arange(n, dtype=np.uint32))
    if gpu.available:
        link_records(table, gpu.array(np.arange(records, dtype=np.uint32)))

    @functools.cache
    def expected(values, steps):
        return results(given[:values], table, thread, steps)

    def measure(name, kernel, values=VALUES, steps=steps):
        out = gpu.empty(n, dtype="uint32")
        return gpuperf(
            launch_over(kernel, given[:values], table, out, steps),
            name=name,
            bytes=4 * n * (values + steps + 1),
            check=lambda: gpu.assert_equal(out, expected(values, steps)),
        )

    runs = {cap: measure(f"at most {cap} registers", in_registers(cuda_kernel, cap)) for cap in CAPS}
    in_shared = measure("half in shared", half_in_shared(cuda_kernel))
    few, short = {}, {}
    for cap in (255, 32):
        few[cap] = measure(f"{FEW} values, at most {cap} registers", in_registers(cuda_kernel, cap, FEW), FEW)
        short[cap] = measure(f"short chain, at most {cap} registers", in_registers(cuda_kernel, cap), steps=few_steps)

    time = {cap: run.time_ns for cap, run in runs.items()}
    claim("SPP-03", time[255] / time[64], because=[few[32].time_ns / few[255].time_ns])
    claim("SPP-04", time[255] / in_shared.time_ns)
    claim("SPP-05", time[255] / min(time[40], time[32]))
    claim("SPP-06", short[32].time_ns / short[255].time_ns)
    claim("SPP-07", time[24] / time[32])
    claim("SPP-08", time[128] / time[255])
