"""How many warps hide a latency.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU", and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

import numpy as np
import pytest

SOURCE = "kernels/latency_hiding_chart.cu"
SCHEDULERS = 4
"""Of an SM."""


def test_warps_or_chains_keep_a_scheduler_busy(cuda_kernel, gpu, record_property):
    """The share of the cycles in which a scheduler issues an addition, by its warps and their independent chains."""
    count = 4096
    kernels = {k: cuda_kernel(SOURCE, "add_chains", name_expression=f"add_chains<{k}>") for k in (1, 2, 4)}
    for warps, chains in ((1, 1), (3, 1), (1, 2), (2, 2), (1, 4)):
        threads = 32 * SCHEDULERS * warps
        out = gpu.zeros(threads)
        begin, end = (gpu.zeros(SCHEDULERS * warps, dtype="int64") for _ in range(2))
        for _ in range(2):  # the second run has the code in the instruction cache
            kernels[chains].launch(grid=(1,), block=(threads,), args=(out, begin, end, count))()
        terms = np.full((count + 1, chains), 1.1, dtype=np.float32)
        terms[0] = np.arange(chains)
        expected = np.add.accumulate(np.add.accumulate(terms)[-1])[-1]
        np.testing.assert_array_equal(gpu.to_host(out), np.full(threads, expected))
        cycles = gpu.to_host(end).max() - gpu.to_host(begin).min()
        record_property(f"busy with {warps} x {chains}", float(warps * chains * count / cycles))


@pytest.mark.gpuperf(budget_s=0.5)
def test_bandwidth_by_warps(cuda_kernel, gpu, gpuperf):
    n = 2**25
    a, b = (gpu.random(n, seed=seed, low=0.5, high=1.5) for seed in (400, 401))
    c = gpu.empty(n)

    def check():
        gpu.assert_allclose(c, a.astype("float64") * b, rtol=1e-6)
        c.fill(0)  # so that elements that the next launch leaves out are seen

    def measure(warps, kernel="multiply_elements", name="{} warps per scheduler"):
        threads = 32 * SCHEDULERS * warps
        block = min(threads, 1024)
        grid = (gpu.sm_count * threads // block,)
        launch = cuda_kernel(SOURCE, kernel).launch(grid=grid, block=(block,), args=(c, a, b, n))
        return gpuperf(launch, name=name.format(warps), bytes=3 * a.nbytes, flops=n, check=check)

    runs = [measure(warps) for warps in (1, 2, 4, 8, 16)]
    by_four = measure(4, "multiply_four", "{} warps per scheduler, four elements each")

    times = [run.time_ns for run in runs]
    assert times == sorted(times, reverse=True)
    # No more warps than the third, but four times the loads on their way, as the fifth has.
    assert by_four.time_ns == pytest.approx(times[4], rel=0.2)
