"""Both sides of a branch in one warp.

From the "Optimization" chapter of a CUDA course.
"""

import numpy as np

SOURCE = "kernels/divergent_branch.cu"
STEPS = {"branch_even_odd": 512, "branch_by_warp": 512, "branch_even_odd_short": 8, "branch_by_warp_short": 8}
"""Of a path."""
PATHS = np.array([0.998, 0.002, -0.998, 0.5], dtype=np.float32)
"""Factor and term of path A, factor and term of path B."""


def all_steps(path, steps):
    """Factor and term of so many steps of a path in one: the sum of a geometric series."""
    factor, term = map(float, path)
    power = factor**steps
    return power, term * (1 - power) / (1 - factor)


def of_two_warps(name):
    """Factors and terms of 64 neighbours, all steps in one; they repeat every two warps."""
    index = np.arange(64)
    takes_a = index % 2 == 0 if "even_odd" in name else index < 32
    path_a, path_b = (all_steps(path, STEPS[name]) for path in PATHS.reshape(2, 2))
    return [np.where(takes_a, *both) for both in zip(path_a, path_b, strict=True)]


def test_branch_in_a_long_computation(cuda_kernel, gpu, gpuperf):
    n = 2**26
    given = gpu.random(n, seed=232, low=0, high=1)
    paths = gpu.array(PATHS)

    def measure(name):
        out = gpu.zeros(n)

        def check():
            factors, terms = (gpu.array(column) for column in of_two_warps(name))
            expected = given.reshape(-1, 64).astype("float64") * factors + terms
            gpu.assert_allclose(out, expected.ravel(), rtol=2e-5)

        launch = cuda_kernel(SOURCE, name).launch(grid=(n // 256,), block=(256,), args=(given, out, paths, n))
        return gpuperf(launch, bytes=2 * given.nbytes, flops=2 * STEPS[name] * n, check=check)

    mixed, by_warp, mixed_short, by_warp_short = (measure(name) for name in STEPS)

    assert mixed.time_ns >= 1.5 * by_warp.time_ns
    # Where the memory is the limit, both paths fit into the wait for it.
    assert mixed_short.time_ns <= 1.15 * by_warp_short.time_ns
