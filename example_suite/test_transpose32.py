"""Transposing a batch of 32 x 32 matrices: what coalescing and bank conflicts cost.

From the GTC 2023 talk "What the profiler is telling you: optimizing your CUDA application".
"""

import functools

import counters
import numpy as np
import pytest

SOURCE = "kernels/transpose32.cu"
TILE_BYTES = {
    "transpose_copy": 0,
    "transpose_naive": 0,
    "transpose_coalesced": 4096,
    "transpose_padded": 4224,
    "transpose_four": 4224,
}
ROWS = {"transpose_four": 8}
"""Of a block of threads; 32 for the others, which have a thread for each element."""
MATRICES = 200_000
STORE_SCATTER = 0.002
"""By up to this share the L1 counts more sectors of many stores than there are, now and then; the L2 does not."""


def test_every_element_lands_where_it_should(cuda_kernel, gpu):
    matrices = 257
    src = gpu.random((matrices, 32, 32), seed=370)
    kernels = {name: cuda_kernel(SOURCE, name) for name in TILE_BYTES}
    for name, kernel in kernels.items():
        dst = gpu.zeros(src.shape)
        kernel.launch(grid=(matrices,), block=(32, ROWS.get(name, 32)), args=(src, dst))()
        given = gpu.to_host(src)
        expected = given if name == "transpose_copy" else np.swapaxes(given, 1, 2)
        np.testing.assert_array_equal(gpu.to_host(dst), expected, err_msg=name)


def test_transpose_of_a_batch(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in TILE_BYTES}
    for name, kernel in kernels.items():
        for profile in kernel.profiles.values():
            assert profile.shared_bytes == TILE_BYTES[name]
            assert profile.registers <= (32 if name in ROWS else 16)
            assert profile.spill_store_bytes == 0

    src = gpu.random((MATRICES, 32, 32), seed=371)

    def measure(name):
        dst = gpu.zeros(src.shape)
        expected = src if name == "transpose_copy" else src.swapaxes(1, 2)
        launch = kernels[name].launch(grid=(MATRICES,), block=(32, ROWS.get(name, 32)), args=(src, dst))
        return gpuperf(launch, bytes=2 * src.nbytes, check=lambda: gpu.assert_equal(dst, expected))

    copy, naive, coalesced, padded, four = (measure(name) for name in kernels)

    assert_what_the_l1_and_l2_received(copy, naive, coalesced, padded, claim)
    turns_of_copy = functools.partial(cycles_of_turns, coalesced, copy, gpu.sm_count)
    assert_turns_at_the_banks(copy, coalesced, padded, turns_of_copy, claim)
    assert_how_busy_it_is(copy, naive, padded, claim)
    # The control: one element per thread keeps copy and transpose from the peak (Little's law); four lift them.
    of_copy, of_padded, of_four = (run.bandwidth / gpu.copy_bandwidth for run in (copy, padded, four))
    claim("TR-01", of_copy, because=[of_four])
    claim("TR-13", of_padded, because=[of_four])
    claim("TR-02", naive.time_ns / copy.time_ns)
    claim("TR-03", naive.time_ns / coalesced.time_ns, because=[turns_of_copy])
    claim("TR-04", naive.time_ns / padded.time_ns)
    claim("TR-14", padded.time_ns / copy.time_ns)
    assert four.time_ns < padded.time_ns <= coalesced.time_ns <= 1.1 * naive.time_ns


def cycles_of_turns(coalesced, copy, sm_count):
    """What the turns of the shared loads take an SM, one a cycle, as a multiple of the copy's cycles."""
    loads = counters.memory_instructions(coalesced, "shared", "ld")
    return loads * counters.wavefronts_per_shared_access(coalesced, "ld") / sm_count / counters.cycles(copy)


def assert_what_the_l1_and_l2_received(copy, naive, coalesced, padded, claim):
    variants = (copy, naive, coalesced, padded)

    def at_l1(way):
        return [counters.sectors_per_request(each, way) for each in variants]

    def of_stores(run):
        return counters.l2_sectors(run, "st") / counters.l2_requests(run, "st")

    def of_naive_stores():
        assert at_l1("st") == pytest.approx([4, 32, 4, 4], rel=STORE_SCATTER)
        return of_stores(naive)

    def of_rows():
        assert of_stores(padded) == pytest.approx(of_stores(copy), rel=1e-3)
        return of_stores(coalesced)

    claim("TR-06", lambda: same(at_l1("ld")))
    claim("TR-19", lambda: same(counters.requests(each, "ld") / MATRICES for each in variants))
    claim("TR-07", of_naive_stores)
    claim("TR-20", of_rows)
    claim("TR-08", lambda: counters.l2_hit_rate_of(padded, "st"))
    claim("TR-21", lambda: 100 - counters.l2_hit_rate_of(padded, "ld"))
    # Eight warps of a block store to each sector, a word each: a cache that does not write through would gather them.
    claim("HW-07", lambda: counters.l2_sectors(naive, "st") / counters.sectors(naive, "st"))
    claim("HW-22", lambda: counters.bytes_written_to_dram(naive) / (32 * counters.l2_sectors(naive, "st")))


def assert_turns_at_the_banks(copy, coalesced, padded, turns_of_copy, claim):
    def turns(run):
        assert counters.wavefronts_per_shared_access(run, "st") == 1
        return counters.wavefronts_per_shared_access(run, "ld")

    claim("TR-09", lambda: turns(coalesced))
    claim("TR-22", lambda: turns(padded))
    claim("TR-10", lambda: counters.bank_conflicts(coalesced) / MATRICES)
    claim("TR-12", lambda: counters.cycles(coalesced) / counters.cycles(copy), because=[turns_of_copy])
    claim("TR-18", lambda: counters.cycles(padded) / counters.cycles(copy))


def assert_how_busy_it_is(copy, naive, padded, claim):
    def times_the_copys(figure):
        return lambda: figure(naive) / figure(copy)

    claim("TR-05", times_the_copys(counters.l1_throughput))
    claim("TR-15", times_the_copys(counters.l2_throughput), because=[lambda: counters.l2_throughput(copy)])
    claim("TR-16", times_the_copys(counters.dram_throughput))
    claim("TR-17", times_the_copys(counters.cycles))
    claim("TR-11", lambda: counters.dram_throughput(padded))
    claim.not_comparable("TR-23")
    claim("TR-24", lambda: counters.active_warps(padded))


def same(figures):
    """The one figure that all of them are."""
    (figure,) = set(figures)
    return figure
