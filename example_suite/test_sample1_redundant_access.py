"""Adding up in global memory, or in a register.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 1).
"""

import numpy as np

SOURCE = "kernels/sample1_redundant_access.cu"
KERNELS = ("accumulate_naive", "accumulate_register", "accumulate_restrict")


def launch_over(kernel, a, b, n):
    return kernel.launch(grid=-(-(n - 2) // 256), block=256, args=(a, b, n))


def test_interior_gains_its_neighbours_and_the_rim_nothing(cuda_kernel, gpu):
    n = 10_007
    before, around = np.random.default_rng(280).uniform(0.5, 1.5, (2, n)).astype(np.float32)
    expected = before.astype(np.float64)
    expected[1:-1] += 10 * (around[:-2].astype(np.float64) + around[1:-1] + around[2:])
    for kernel in [cuda_kernel(SOURCE, name) for name in KERNELS]:
        a = gpu.array(before)
        launch_over(kernel, a, gpu.array(around), n)()
        np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=kernel.name)


def test_accumulating_over_an_array(cuda_kernel, gpu, gpuperf):
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

        launch = launch_over(cuda_kernel(SOURCE, name), a, b, n)
        return gpuperf(launch, bytes=3 * start.nbytes, flops=31 * n, check=check, reset=restore)

    naive, register, restrict = (measure(name) for name in KERNELS)
    assert register.time_ns < naive.time_ns
    assert restrict.time_ns < 1.05 * register.time_ns  # the naive source, but told that nothing overlaps
