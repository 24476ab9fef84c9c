"""Both sides of a branch in one warp.

From the "Optimization" chapter of a CUDA course.
"""

import counters
import numpy as np
import ptx_counts
from launching import blocks_over

SOURCE = "kernels/divergent_branch.cu"
NAMES = ("branch_even_odd", "branch_by_warp")
BLOCK = 256
ITERATIONS = 512
UNROLLED = 64
PATHS = np.array([0.998, 0.002, -0.998, 0.5], dtype=np.float32)
"""Factor and term of path A, factor and term of path B."""
PATH_A, PATH_B = ((float(factor), float(term)) for factor, term in PATHS.reshape(2, 2))


def launch_over(kernel, given, out, paths):
    n = given.size
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=(given, out, paths, n))


def at_the_end(path, x):
    """What a path makes of ``x``: the sum of its geometric series, in float64."""
    power, series = all_steps(path)
    return power * x.astype("float64") + series


def all_steps(path):
    """Factor and term of all steps of a path in one."""
    factor, term = path
    power = factor**ITERATIONS
    return power, term * (1 - power) / (1 - factor)


def of_two_warps(name):
    """The 64 factors and the 64 terms, all steps in one, of neighbouring elements; they repeat every two warps."""
    index = np.arange(64)
    takes_a = index % 2 == 0 if name == "branch_even_odd" else index < 32
    return [np.where(takes_a, *of_each_path) for of_each_path in zip(all_steps(PATH_A), all_steps(PATH_B), strict=True)]


def test_each_element_takes_its_path(cuda_kernel, gpu):
    kernels = {name: cuda_kernel(SOURCE, name) for name in NAMES}
    n = 100_003
    given = np.random.default_rng(230).random(n, dtype=np.float32)
    index = np.arange(n)
    takes_a = {"branch_even_odd": index % 2 == 0, "branch_by_warp": index // 32 % 2 == 0}
    for name, kernel in kernels.items():
        out = gpu.zeros(n)
        launch_over(kernel, gpu.array(given), out, gpu.array(PATHS))()
        expected = np.where(takes_a[name], at_the_end(PATH_A, given), at_the_end(PATH_B, given))
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=2e-5)


def test_sorting_elements_by_warp_changes_no_result(cuda_kernel, gpu):
    even_odd, by_warp = (cuda_kernel(SOURCE, name) for name in ("branch_even_odd", "branch_by_warp"))
    given = np.random.default_rng(231).random(64 * BLOCK, dtype=np.float32)

    def sort(values):  # the even elements of each 64 into the first warp, the odd ones into the second
        return np.ascontiguousarray(values.reshape(-1, 32, 2).swapaxes(1, 2)).ravel()

    mixed, sorted_out = gpu.zeros(given.size), gpu.zeros(given.size)
    launch_over(even_odd, gpu.array(given), mixed, gpu.array(PATHS))()
    launch_over(by_warp, gpu.array(sort(given)), sorted_out, gpu.array(PATHS))()
    np.testing.assert_array_equal(gpu.to_host(sorted_out), sort(gpu.to_host(mixed)))


def test_branch_in_a_long_computation(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in NAMES}
    for kernel in kernels.values():
        for arch, profile in kernel.profiles.items():  # both paths are there, neither folded nor selected
            counts = ptx_counts.instructions(kernel, arch)
            assert sum(count for name, count in counts.items() if name.startswith("fma.")) == 2 * UNROLLED
            assert profile.opcodes["fp32"] >= 2 * UNROLLED

    n = 2**26
    given = gpu.random(n, seed=232, low=0, high=1)
    paths = gpu.array(PATHS)

    def measure(name):
        out = gpu.zeros(n)

        def check():
            factors, terms = (gpu.array(column) for column in of_two_warps(name))
            expected = given.reshape(-1, 64).astype("float64") * factors + terms
            gpu.assert_allclose(out, expected.ravel(), rtol=2e-5)

        launch = launch_over(kernels[name], given, out, paths)
        return gpuperf(launch, bytes=2 * given.nbytes, flops=2 * ITERATIONS * n, check=check)

    mixed, by_warp = (measure(name) for name in kernels)

    def lanes_of_mixed_warps():
        assert counters.active_lanes(by_warp) >= 31.5
        return counters.active_lanes(mixed)

    claim.counter("DB-03", lanes_of_mixed_warps, equals=16, tol=0.5)
    claim("DB-01", mixed.time_ns / by_warp.time_ns, between=(1.8, 2.2))
    claim("DB-02", mixed.time_ns / by_warp.time_ns, between=(1.5, 2))
    # A chain on an H200 reaches 0.63 of the peak if each step reads three registers, as here; 0.87 with a literal in
    # place of one of them (Horner), and 0.99 of the rate of additions with one register (kernel_a_latency).
    assert by_warp.flops >= 0.5 * gpu.fma_throughput
