"""Adding up in global memory, or in a register.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 1).
"""

import numpy as np

SOURCE = "kernels/sample1_redundant_access.cu"
BLOCK = 256
GLOBAL_ACCESSES = {"accumulate_naive": (31, 30), "accumulate_register": (4, 1), "accumulate_restrict": (4, 1)}
"""Loads and stores in the machine code."""
COUNTERS = "a counter of Nsight Compute"


def grid_over_interior(n):
    return (-(-(n - 2) // BLOCK),)


def test_interior_gains_its_neighbours_and_the_rim_nothing(cuda_kernel, gpu):
    n = 10_007
    rng = np.random.default_rng(280)
    before, around = rng.uniform(0.5, 1.5, (2, n)).astype(np.float32)
    expected = before.astype(np.float64)
    expected[1:-1] += 10 * (around[:-2].astype(np.float64) + around[1:-1] + around[2:])
    kernels = {name: cuda_kernel(SOURCE, name) for name in GLOBAL_ACCESSES}
    for name, kernel in kernels.items():
        a = gpu.array(before)
        kernel.launch(grid=grid_over_interior(n), block=(BLOCK,), args=(a, gpu.array(around), n))()
        np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=name)


def test_accumulating_over_an_array(cuda_kernel, gpu, gpuperf, claim):
    for counter in ("S1-02", "S1-03", "S1-04", "S1-05", "S1-06", "S1-08", "S1-09", "S1-10", "S1-11", "S1-12"):
        claim.skipped(counter, COUNTERS)
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

        launch = kernels[name].launch(grid=grid_over_interior(n), block=(BLOCK,), args=(a, b, n))
        return gpuperf(launch, bytes=3 * start.nbytes, flops=31 * n, check=check, reset=restore)

    naive, register, restrict = (measure(name) for name in kernels)

    assert restrict.time_ns <= 1.05 * register.time_ns
    claim("S1-01", naive.time_ns / register.time_ns, at_least=2.5)
    reach = register.bandwidth / gpu.copy_bandwidth
    reason = (
        "Little's law: a thread has 8 bytes of its own to load and 4 to store, and lives 1.1 us for it; all resident "
        "threads of an H200 together then move 3.0 TB/s, which was plenty for the 0.96 TB/s of an RTX 6000 Ada"
    )
    claim.refuted("S1-07", reach, holds=reach >= 0.8, reason=reason)
