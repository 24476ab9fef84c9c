"""Registers that are kept while a thread waits: spilled, or moved to shared memory, they make room for more warps.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import numpy as np
import pytest

SOURCE = "kernels/spilling_that_pays.cu"
LANES, RECORD_BYTES = 8, 32


def results(given, table, thread, steps):
    """What the kernels compute, modulo 2^32, of arrays of uint32; ``thread`` counts the threads."""
    numbers, number = [], thread
    for values in given:
        number = (number ^ values) * 2654435761 + (number >> 15)
        numbers.append(number)
    lane = thread % LANES
    record, total = (number & (table.nbytes - RECORD_BYTES))[thread - lane] // RECORD_BYTES, 0 * number
    for _ in range(steps):
        total = total + table[record, lane]
        record = table[record, 0] // RECORD_BYTES
    result = total
    for number in numbers:
        result = result * total + number
    return result


@pytest.mark.gpuperf(budget_s=0.6)
def test_waiting_with_few_registers(cuda_kernel, gpu, gpuperf):
    n, records = 132 * 2048 * 3, 2**24
    given = gpu.random((96, n), "uint32", seed=721, low=0, high=2**32 - 1)
    table = gpu.random((records, LANES), "uint32", seed=722, low=0, high=2**32 - 1)
    if gpu.available:  # one long cycle of all records, in an order without a pattern; random links would run together
        record = gpu.array(np.arange(records, dtype=np.uint32))
        table[:, 0] = (record * 1664525 + 1013904223) % records * RECORD_BYTES

    def measure(called, name="in_registers", cap=255, values=96, steps=96):
        out = gpu.empty(n, dtype="uint32")

        def check():
            thread = gpu.array(np.arange(n, dtype=np.uint32))
            gpu.assert_equal(out, results(given[:values], table, thread, steps))

        options = () if cap == 255 else (f"-maxrregcount={cap}",)
        kernel = cuda_kernel(SOURCE, name, name_expression=f"{name}<{values}>", options=options)
        args = (given[:values], table, out, table.nbytes - RECORD_BYTES, n, steps)
        launch = kernel.launch(grid=n // 128, block=128, args=args)
        return gpuperf(launch, name=called, bytes=4 * n * (values + steps + 1), check=check)

    caps = (255, 128, 64, 40, 32, 24)  # 255 registers are all that the hardware has, and no limit here
    runs = {cap: measure(f"at most {cap} registers", cap=cap) for cap in caps}
    in_shared = measure("half in shared", "half_in_shared")
    few, few_capped = (measure(f"8 values, at most {cap} registers", cap=cap, values=8) for cap in (255, 32))
    short, short_capped = (measure(f"short chain, at most {cap} registers", cap=cap, steps=2) for cap in (255, 32))
    assert in_shared.spill_bytes == runs[128].spill_bytes == 0 < runs[64].spill_bytes
    assert max(runs[64].time_ns, in_shared.time_ns) < runs[255].time_ns
    assert short.time_ns < short_capped.time_ns  # without a wait, spilling is all cost
    assert few_capped.time_ns < 1.05 * few.time_ns
