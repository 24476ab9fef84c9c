"""Adding up in global memory, or in a register.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 1).
"""

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/sample1_redundant_access.cu"
BLOCK = 256
GLOBAL_ACCESSES = {
    "accumulate_naive": (31, 30), "accumulate_register": (4, 1), "accumulate_restrict": (4, 1),
}  # fmt: skip
"""Loads and stores in the machine code."""


def launch_over(kernel, a, b, n):
    return kernel.launch(grid=(blocks_over(n - 2, BLOCK),), block=(BLOCK,), args=(a, b, n))


def test_interior_gains_its_neighbours_and_the_rim_nothing(cuda_kernel, gpu):
    n = 10_007
    rng = np.random.default_rng(280)
    before, around = rng.uniform(0.5, 1.5, (2, n)).astype(np.float32)
    expected = before.astype(np.float64)
    expected[1:-1] += 10 * (around[:-2].astype(np.float64) + around[1:-1] + around[2:])
    kernels = {name: cuda_kernel(SOURCE, name) for name in GLOBAL_ACCESSES}
    for name, kernel in kernels.items():
        a = gpu.array(before)
        launch_over(kernel, a, gpu.array(around), n)()
        np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=name)


def test_accumulating_over_an_array(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in GLOBAL_ACCESSES}
    for name, kernel in kernels.items():
        for profile in kernel.profiles.values():
            accesses = (profile.opcodes["global_load"], profile.opcodes["global_store"])
            assert accesses == GLOBAL_ACCESSES[name]

    n = 2**27
    start = gpu.random(n, seed=282, low=0.5, high=1.5)
    b = gpu.random(n, seed=283, low=0.5, high=1.5)

    def measure(name):
        a = gpu.empty_like(start)

        def restore():
            a[...] = start

        def check():
            gain = 10 * (b[:-2] + b[1:-1] + b[2:])
            gpu.assert_allclose(a[1:-1], start[1:-1] + gain, rtol=1e-5)

        launch = launch_over(kernels[name], a, b, n)
        return gpuperf(launch, bytes=3 * start.nbytes, flops=31 * n, check=check, reset=restore)

    naive, register, restrict = (measure(name) for name in kernels)

    assert_requests(naive, register, n, claim)
    assert_traffic(naive, register, claim)
    assert_what_is_busy(naive, register, claim)
    claim("S1-01", naive.time_ns / register.time_ns, because=[lambda: counters.l2_throughput(naive)])
    assert_control(register, restrict)


def assert_control(register, restrict):
    """The naive source without its possible overlap gains as much; more loads on their way reach the bandwidth."""
    assert restrict.time_ns == pytest.approx(register.time_ns, rel=0.05)


def assert_requests(naive, register, n, claim):
    warps = blocks_over(n - 2, 32)

    def instructions(run):
        return sum(counters.memory_instructions(run, "global", way) for way in ("ld", "st"))

    claim("S1-02", lambda: counters.requests(naive, "ld") / warps)
    claim("S1-13", lambda: counters.requests(naive, "st") / warps)
    claim("S1-14", lambda: counters.requests(register, "ld") / warps)
    claim("S1-15", lambda: counters.requests(register, "st") / warps)
    claim("S1-03", lambda: 100 * (instructions(register) / instructions(naive) - 1))
    claim("S1-11", lambda: counters.bytes_used_per_sector(register))
    claim("S1-21", lambda: counters.bytes_used_per_sector(naive))


def assert_traffic(naive, register, claim):
    claim("S1-04", lambda: counters.dram_bytes(register) / counters.dram_bytes(naive))
    claim("S1-16", lambda: counters.bytes_read_from_dram(naive) / 1e9)
    claim("S1-17", lambda: counters.bytes_written_to_dram(naive) / counters.bytes_read_from_dram(naive))
    claim("S1-18", lambda: counters.bytes_from_l1_to_l2(naive) / 1e9)
    claim("S1-05", lambda: 100 * (counters.bytes_from_l1_to_l2(register) / counters.bytes_from_l1_to_l2(naive) - 1))
    claim("S1-06", lambda: counters.bytes_from_l2_to_l1(register) / counters.bytes_from_l2_to_l1(naive))
    claim(
        "S1-09",
        lambda: counters.l1_hit_rate(register) - counters.l1_hit_rate(naive),
        because=[lambda: counters.l1_hit_rate(naive)],
    )
    claim("S1-20", lambda: counters.l2_hit_rate(register) - counters.l2_hit_rate(naive))
    claim("THR-04", lambda: counters.l2_hit_rate(naive) - counters.l2_hit_rate(register))


def assert_what_is_busy(naive, register, claim):
    def throttle_against_the_next():
        assert counters.stall_share(register, "lg_throttle") <= 0.02
        return counters.stall(naive, "lg_throttle") / counters.longest_stall(naive, "long_scoreboard", "lg_throttle")

    claim("S1-07", lambda: counters.dram_throughput(register) / counters.dram_throughput(naive))
    claim(
        "S1-19",
        lambda: counters.dram_throughput(register),
        because=[lambda: counters.stall_share(register, "long_scoreboard")],
    )
    claim(
        "S1-08",
        lambda: counters.pipe_busy(register, "lsu") / counters.pipe_busy(naive, "lsu"),
        because=[lambda: counters.pipe_busy(naive, "lsu")],
    )
    claim("S1-10", throttle_against_the_next)
    claim(
        "S1-12",
        lambda: counters.instructions_per_cycle(register) / counters.instructions_per_cycle(naive),
        because=[lambda: counters.cycles(register) / counters.cycles(naive)],
    )
