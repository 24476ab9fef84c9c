"""Both sides of a branch in one warp.

From the "Optimization" chapter of a CUDA course.
"""

import counters
import numpy as np
import ptx_counts
from launching import blocks_over

SOURCE = "kernels/divergent_branch.cu"
STEPS = {"branch_even_odd": 512, "branch_by_warp": 512, "branch_even_odd_short": 8, "branch_by_warp_short": 8}
"""Of a path."""
BLOCK = 256
UNROLLED = 64
PATHS = np.array([0.998, 0.002, -0.998, 0.5], dtype=np.float32)
"""Factor and term of path A, factor and term of path B."""
PATH_A, PATH_B = ((float(factor), float(term)) for factor, term in PATHS.reshape(2, 2))


def launch_over(kernel, given, out, paths):
    n = given.size
    return kernel.launch(grid=(blocks_over(n, BLOCK),), block=(BLOCK,), args=(given, out, paths, n))


def at_the_end(path, x, steps):
    """What so many steps of a path make of ``x``: the sum of its geometric series, in float64."""
    power, series = all_steps(path, steps)
    return power * x.astype("float64") + series


def all_steps(path, steps):
    """Factor and term of so many steps of a path in one."""
    factor, term = path
    power = factor**steps
    return power, term * (1 - power) / (1 - factor)


def of_two_warps(name):
    """The 64 factors and the 64 terms, all steps in one, of neighbouring elements; they repeat every two warps."""
    index = np.arange(64)
    takes_a = index % 2 == 0 if "even_odd" in name else index < 32
    of_paths = (all_steps(path, STEPS[name]) for path in (PATH_A, PATH_B))
    return [np.where(takes_a, *of_each_path) for of_each_path in zip(*of_paths, strict=True)]


def test_each_element_takes_its_path(cuda_kernel, gpu):
    kernels = {name: cuda_kernel(SOURCE, name) for name in STEPS}
    n = 100_003
    given = np.random.default_rng(230).random(n, dtype=np.float32)
    index = np.arange(n)
    for name, kernel in kernels.items():
        out = gpu.zeros(n)
        launch_over(kernel, gpu.array(given), out, gpu.array(PATHS))()
        takes_a = index % 2 == 0 if "even_odd" in name else index // 32 % 2 == 0
        expected = np.where(takes_a, *(at_the_end(path, given, STEPS[name]) for path in (PATH_A, PATH_B)))
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
    kernels = {name: cuda_kernel(SOURCE, name) for name in STEPS}
    for name, kernel in kernels.items():
        steps = min(STEPS[name], UNROLLED)
        for arch, profile in kernel.profiles.items():  # both paths are there, neither folded nor selected
            counts = ptx_counts.instructions(kernel, arch)
            assert sum(count for op, count in counts.items() if op.startswith("fma.")) == 2 * steps
            assert profile.opcodes["fp32"] >= 2 * steps

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
        return gpuperf(launch, bytes=2 * given.nbytes, flops=2 * STEPS[name] * n, check=check)

    mixed, by_warp, mixed_short, by_warp_short = (measure(name) for name in kernels)

    def lanes_of_mixed_warps():
        assert counters.active_lanes(by_warp) >= 31.5
        return counters.active_lanes(mixed)

    claim("DB-03", lanes_of_mixed_warps)
    claim("DB-01", mixed.time_ns / by_warp.time_ns)
    # The control: where the memory is the limit, both paths fit into the wait for it.
    assert mixed_short.time_ns <= 1.15 * by_warp_short.time_ns
    # A chain on an H200 reaches 0.63 of the peak if each step reads three registers, as here; 0.87 with a literal in
    # place of one of them (Horner), and 0.99 of the rate of additions with one register (kernel_a_latency).
    assert by_warp.flops >= 0.5 * gpu.fma_throughput
