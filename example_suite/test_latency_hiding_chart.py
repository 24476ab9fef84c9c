"""How many warps hide a latency.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU", and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

import itertools
import math

import counters
import numpy as np
import pytest

SOURCE = "kernels/latency_hiding_chart.cu"
SCHEDULERS = 4
"""Of an SM."""
FADD_LATENCY = 4
"""Cycles, on Hopper."""
WARPS_PER_SCHEDULER = (1, 2, 4, 8, 16)


def share_of_cycles_issued(warps, latency, ready):
    """Of a scheduler that issues an instruction per cycle, from the warp that has waited longest.

    Each warp has ``ready`` instructions to issue, and for what comes next it waits until ``latency`` cycles after the
    first of them.
    """
    free_at = [0] * warps
    began = [0] * warps
    left = [ready] * warps
    issued = 0
    cycles = 1000 * latency
    for now in range(cycles):
        warp = min(range(warps), key=free_at.__getitem__)
        if free_at[warp] > now:
            continue
        if left[warp] == ready:
            began[warp] = now
        issued += 1
        left[warp] -= 1
        if left[warp] == 0:
            left[warp], free_at[warp] = ready, max(now + 1, began[warp] + latency)
    return issued / cycles


def warps_that_hide(latency, ready):
    """By Little's law."""
    return math.ceil(latency / ready)


def test_warps_that_hide_a_latency(claim):
    enough = next(warps for warps in itertools.count(1) if share_of_cycles_issued(warps, 18, ready=2) > 0.99)
    assert enough == warps_that_hide(18, ready=2)
    assert share_of_cycles_issued(4, 18, ready=2) == pytest.approx(4 * 2 / 18, rel=0.01)
    assert share_of_cycles_issued(1, 18, ready=18) > 0.99  # one warp will do that has 17 others to issue
    claim("LAT-01", enough, equals=9)


def after_all_additions(chains, count):
    """The chains' sum, added up one by one in float32."""
    terms = np.full((count + 1, chains), 1.1, dtype=np.float32)
    terms[0] = np.arange(chains)
    ends = np.add.accumulate(terms)[-1]
    return np.add.accumulate(ends)[-1]


def test_warps_or_chains_keep_a_scheduler_busy(cuda_kernel, gpu):
    count = 4096
    kernels = {
        chains: cuda_kernel(SOURCE, "add_chains", name_expression=f"add_chains<{chains}>") for chains in (1, 2, 4)
    }

    def busy(warps, chains):
        """Share of the cycles in which a scheduler with so many warps issues an addition."""
        threads = 32 * SCHEDULERS * warps
        out = gpu.zeros(threads)
        begin, end = (gpu.zeros(SCHEDULERS * warps, dtype="int64") for _ in range(2))
        launch = kernels[chains].launch(grid=(1,), block=(threads,), args=(out, begin, end, count))
        for _ in range(2):  # the second run has the code in the instruction cache
            launch()
        expected = np.broadcast_to(after_all_additions(chains, count), out.shape)
        np.testing.assert_array_equal(gpu.to_host(out), expected)
        return float(warps * chains * count / (gpu.to_host(end).max() - gpu.to_host(begin).min()))

    found = {(warps, chains): busy(warps, chains) for warps in (1, 2, 4, 8) for chains in kernels}
    if gpu.compute_capability != (9, 0):
        pytest.skip(f"the latency expected is Hopper's, this is {gpu.name}")
    for (warps, chains), share in found.items():
        in_flight = warps * chains
        if in_flight <= FADD_LATENCY / 2:
            assert share == pytest.approx(in_flight / FADD_LATENCY, rel=0.1), (warps, chains)
        else:  # enough to hide it; what is left is how evenly they come
            assert share >= 0.6, (warps, chains)


@pytest.mark.gpuperf(budget_s=0.5)
def test_bandwidth_by_warps(cuda_kernel, gpu, gpuperf, claim):
    kernel = cuda_kernel(SOURCE, "multiply_elements")
    for profile in kernel.profiles.values():
        assert (profile.opcodes["global_load"], profile.opcodes["global_store"]) == (2, 1)

    n = 2**25
    a = gpu.random(n, seed=400, low=0.5, high=1.5)
    b = gpu.random(n, seed=401, low=0.5, high=1.5)
    c = gpu.empty(n)

    def check():
        gpu.assert_allclose(c, a.astype("float64") * b, rtol=1e-6)
        c.fill(0)  # what the next launch does not write is seen

    def measure(warps):
        threads = 32 * SCHEDULERS * warps
        block = min(threads, 1024)
        launch = kernel.launch(grid=(gpu.sm_count * threads // block,), block=(block,), args=(c, a, b, n))
        return gpuperf(launch, name=f"{warps} warps per scheduler", bytes=3 * a.nbytes, flops=n, check=check)

    runs = [measure(warps) for warps in WARPS_PER_SCHEDULER]
    # Four warps where there was one; additions, and independent ones, are kernel_a_latency's.
    claim.counter_refuted(
        "LAT-02",
        lambda: counters.issue_rate(runs[2]) / counters.issue_rate(runs[0]),
        holds=lambda gain: abs(gain - 4) <= 0.4,
        reason="the latency does not stay the same: an instruction takes a warp 41 cycles at a tenth of the DRAM's "
        "peak and 46 at a third of it; with the fixed latency of an addition, three warps issue 2.97 times as much "
        "(KA-10)",
    )
    bandwidths = [run.bandwidth for run in runs]

    assert bandwidths[2] >= 3 * bandwidths[0]
    gains = [more / fewer for fewer, more in itertools.pairwise(bandwidths)]
    claim("LAT-03", min(gains), at_least=0.95)
