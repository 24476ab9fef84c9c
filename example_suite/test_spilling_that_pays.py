"""Values that wait in local or shared memory make room for warps that walk.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput".
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/spilling_that_pays.cu"
COEFFICIENTS = 96
BLOCK = 128
CAPS = (255, 96, 80, 64, 48, 32)
"""Registers per thread at most; 255 is no limit here."""
PLACES = 2**22
"""16 MB: more than the L1 caches have, and well within the L2."""
WARP = 32


def walk(cuda_kernel, cap=255):
    return cuda_kernel(SOURCE, "walk", options=() if cap == 255 else (f"-maxrregcount={cap}",))


def launch_over(kernel, given, table, start, out, hops):
    """``given`` has blocks, coefficients and threads."""
    return kernel.launch(grid=(len(given),), block=(BLOCK,), args=(given, table, start, out, table.size, hops))


def table_of(places):
    """Where each place leads: one circle through all of them, in no order that a cache could use."""
    here = np.arange(places, dtype=np.uint64)
    return ((here * 1_664_525 + 1_013_904_223) % places).astype(np.int32)  # of full period for a power of two


def evaluated(given, table, start, hops):
    """Both polynomials in float64; for NumPy and CuPy arrays."""
    place = start.reshape(len(given), BLOCK)
    for _ in range(hops):
        place = table[place]
    x = place.astype("float64") / table.size
    values = [given[:, k, :].astype("float64") for k in range(COEFFICIENTS)]
    r = 0 * values[0]
    for value in values:
        r = r * 0.5 + value
    for value in values[::-1]:
        r = r * x + value
    return r.ravel()


@pytest.mark.parametrize("cap", CAPS)
def test_polynomials_are_right_under_a_cap(cuda_kernel, gpu, cap):
    check(walk(cuda_kernel, cap), gpu)


def test_polynomials_are_right_with_coefficients_in_shared_memory(cuda_kernel, gpu):
    check(cuda_kernel(SOURCE, "walk_shared"), gpu)


def check(kernel, gpu):
    draw = np.random.default_rng(440)
    given = draw.uniform(0.5, 1.5, (3, COEFFICIENTS, BLOCK)).astype(np.float32)
    table, start = table_of(1024), draw.integers(0, 1024, 3 * BLOCK, dtype=np.int32)
    out = gpu.zeros(start.size)
    launch_over(kernel, gpu.array(given), gpu.array(table), gpu.array(start), out, 7)()
    np.testing.assert_allclose(gpu.to_host(out), evaluated(given, table, start, 7), rtol=1e-5)


def test_what_makes_room(cuda_kernel, gpu, claim):
    given, some, out = gpu.empty((1, COEFFICIENTS, BLOCK)), gpu.empty(BLOCK, "int32"), gpu.empty(BLOCK)
    free, capped, shared = walk(cuda_kernel), walk(cuda_kernel, 64), cuda_kernel(SOURCE, "walk_shared")
    for profile in (*free.profiles.values(), *shared.profiles.values()):
        assert (profile.stack_bytes, profile.spill_store_bytes) == (0, 0)
    for profile in shared.profiles.values():
        assert profile.shared_bytes == COEFFICIENTS // 2 * BLOCK * 4
    claim("SP-06", max(abs(profile.registers - 64) for profile in capped.profiles.values()))
    if "sm_90" in free.profiles:
        resident = [launch_over(kernel, given, some, some, out, 1).occupancy["sm_90"].blocks_per_sm
                    for kernel in (free, capped, shared)]  # fmt: skip
        assert resident == [4, 8, 8]
        claim("SP-07", resident[1] / resident[0])
        claim("SP-08", capped.profiles["sm_90"].spill_store_bytes)


@pytest.mark.gpuperf(budget_s=1.0)
def test_walks_with_coefficients_put_away(cuda_kernel, gpu, gpuperf, claim):
    threads = 2**19
    given = gpu.random((threads // BLOCK, COEFFICIENTS, BLOCK), seed=441, low=0.5, high=1.5)
    table = gpu.array(table_of(PLACES))
    together = gpu.array(np.random.default_rng(442).integers(0, PLACES, threads // WARP, "int32").repeat(WARP))
    scattered = gpu.random(threads, "int32", seed=443, low=0, high=PLACES)
    walks = {"": (together, 256), ", no hops": (together, 0), ", scattered": (scattered, 64)}

    @functools.cache
    def expected(of):
        return evaluated(given, table, *walks[of])

    def measure(kernel, name, of=""):
        out = gpu.zeros(threads)
        start, hops = walks[of]
        return gpuperf(
            launch_over(kernel, given, table, start, out, hops),
            name=name + of,
            bytes=given.nbytes + start.nbytes + out.nbytes,
            flops=4 * given.size,
            check=lambda: gpu.assert_allclose(out, expected(of), rtol=2e-5),
        )

    def under(cap, of=""):
        return measure(walk(cuda_kernel, cap), f"at most {cap} registers", of)

    runs = {cap: under(cap) for cap in CAPS}
    shared = measure(cuda_kernel(SOURCE, "walk_shared"), "half in shared memory")
    # The controls: nothing to wait for, and a memory that is busy already.
    no_hops, busy = ([under(cap, of) for cap in (255, 64)] for of in (", no hops", ", scattered"))
    time = {cap: run.time_ns for cap, run in runs.items()}
    claim("SP-01", time[255] / time[64])
    claim("SP-02", time[255] / min(time.values()))
    claim("SP-03", time[255] / shared.time_ns)
    claim("SP-04", no_hops[0].time_ns / no_hops[1].time_ns)
    claim("SP-05", busy[0].time_ns / busy[1].time_ns)
