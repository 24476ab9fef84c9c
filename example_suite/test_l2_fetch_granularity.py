"""How much the L2 fetches when 32 bytes are asked for, and when the rest of it is of use.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import contextlib
import functools
import math

import pytest

SOURCE = "kernels/l2_fetch_granularity.cu"
BITS, PARTICLES = 8, 2**23
LIMIT = 5  # cudaLimitMaxL2FetchGranularity


def z_order(x, y, z):
    """Number of a cell along a Z-order curve: the bits of its coordinates by turns."""
    return sum((part >> bit & 1) << (3 * bit + axis) for bit in range(BITS) for axis, part in enumerate((x, y, z)))


@contextlib.contextmanager
def fetch_granularity(size):
    """Sets the device's limit, in bytes, and then back."""
    from cupy.cuda import runtime

    before = runtime.deviceGetLimit(LIMIT)
    runtime.deviceSetLimit(LIMIT, size)
    try:
        yield
    finally:
        runtime.deviceSetLimit(LIMIT, before)


@pytest.mark.gpuperf(budget_s=0.2)
def test_gathering_from_a_large_table(cuda_kernel, gpu, gpuperf):
    records = gpu.random((2 ** (3 * BITS), 8), seed=402)
    cells = {name: gpu.empty(PARTICLES, "int32") for name in ("random", "Z-order")}
    if gpu.available:
        coordinates = (gpu.random(PARTICLES, "int32", seed=seed, low=0, high=2**BITS) for seed in (403, 404, 405))
        cells["random"][...] = cells["Z-order"][...] = z_order(*coordinates)
        cells["Z-order"].sort()
    sums = functools.cache(lambda: records.sum(axis=1, dtype="float64"))
    moved = round(records.nbytes * (1 - math.exp(-PARTICLES / len(records)))) + 8 * PARTICLES  # the records touched

    def measure(name, at_once=0):
        """``at_once``: the bytes that a load asks the L2 to fetch; 0 leaves it to the limit."""
        out, order = gpu.empty(PARTICLES), cells[name.split(",")[0]]
        kernel = cuda_kernel(SOURCE, "gather", name_expression=f"gather<{at_once}>")
        launch = kernel.launch(grid=(PARTICLES // 512,), block=(256,), args=(out, records, order, PARTICLES))
        return gpuperf(launch, name=name, bytes=moved, check=lambda: gpu.assert_allclose(out, sums()[order], rtol=1e-6))

    random, in_order = (measure(order) for order in cells)
    random_lines, _ = (measure(f"{order}, whole lines", 128) for order in cells)
    for size in (32, 128):  # instead of 64
        with fetch_granularity(size) if gpu.available else contextlib.nullcontext():
            for order in cells:
                measure(f"{order}, limit {size}")

    assert in_order.time_ns < random.time_ns < random_lines.time_ns
