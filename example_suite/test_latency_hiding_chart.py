"""How many warps hide a latency.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU", and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

import itertools

import numpy as np
import pytest

SOURCE = "kernels/latency_hiding_chart.cu"
SCHEDULERS = 4
"""Of an SM."""
FADD_LATENCY = 4
"""Cycles, on Hopper."""
WARPS_PER_SCHEDULER = (1, 2, 4, 8, 16)


def after_all_additions(chains, count):
    """The chains' sum, added up one by one in float32."""
    terms = np.full((count + 1, chains), 1.1, dtype=np.float32)
    terms[0] = np.arange(chains)
    ends = np.add.accumulate(terms)[-1]
    return np.add.accumulate(ends)[-1]


def test_warps_or_chains_keep_a_scheduler_busy(cuda_kernel, gpu, claim):
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

    found = {(warps, chains): busy(warps, chains) for warps in (1, 2, 3, 4, 8) for chains in kernels}
    if gpu.compute_capability != (9, 0):
        pytest.skip(f"the latency expected is Hopper's, this is {gpu.name}")
    for (warps, chains), share in found.items():
        in_flight = warps * chains
        if in_flight <= FADD_LATENCY / 2:
            assert share == pytest.approx(in_flight / FADD_LATENCY, rel=0.1), (warps, chains)
        else:  # enough to hide it; what is left is how evenly they come
            assert share >= 0.6, (warps, chains)
    claim("LAT-01", found[2, 2])
    claim("LAT-02", found[3, 1] / found[1, 1])
    claim("LAT-04", found[1, 2] / found[1, 1])
    claim("LAT-05", found[1, 4])


@pytest.mark.gpuperf(budget_s=0.5)
def test_bandwidth_by_warps(cuda_kernel, gpu, gpuperf, claim):
    one_by_one, four_by_four = (cuda_kernel(SOURCE, name) for name in ("multiply_elements", "multiply_four"))
    for kernel, elements in ((one_by_one, 1), (four_by_four, 4)):
        for profile in kernel.profiles.values():
            found = (profile.opcodes["global_load"], profile.opcodes["global_store"])
            assert found == (2 * elements, elements)

    n = 2**25
    a = gpu.random(n, seed=400, low=0.5, high=1.5)
    b = gpu.random(n, seed=401, low=0.5, high=1.5)
    c = gpu.empty(n)

    def check():
        gpu.assert_allclose(c, a.astype("float64") * b, rtol=1e-6)
        c.fill(0)  # what the next launch does not write is seen

    def measure(warps, kernel=one_by_one, name="{} warps per scheduler"):
        threads = 32 * SCHEDULERS * warps
        block = min(threads, 1024)
        launch = kernel.launch(grid=(gpu.sm_count * threads // block,), block=(block,), args=(c, a, b, n))
        return gpuperf(launch, name=name.format(warps), bytes=3 * a.nbytes, flops=n, check=check)

    runs = {warps: measure(warps) for warps in WARPS_PER_SCHEDULER}
    by_four = measure(4, four_by_four, "{} warps per scheduler, four elements each")
    bandwidths = [run.bandwidth for run in runs.values()]
    assert bandwidths[2] >= 3 * bandwidths[0]
    gains = [more / fewer for fewer, more in itertools.pairwise(bandwidths)]
    claim("LAT-03", min(gains))

    # The control: no more warps, and four times the loads on their way.
    assert by_four.bandwidth >= 1.5 * runs[4].bandwidth
    assert by_four.bandwidth == pytest.approx(runs[16].bandwidth, rel=0.2)
