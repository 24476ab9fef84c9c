"""A loop whose length the compiler knows, or not.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 5).
"""

import itertools

import numpy as np
import pytest

SOURCE = "kernels/sample5_runtime_bound.cu"
BOUNDS = {"sum_runtime": (3,), "sum_constant": (), "sum_guarded": (3,)}
"""What tells a kernel the length of its loop."""


def launch_over(kernel, out, given, *bound):
    return kernel.launch(grid=-(-out.size // 256), block=256, args=(out, given, given.size, *bound))


def test_three_neighbours_add_up(cuda_kernel, gpu):
    values = np.random.default_rng(330).uniform(0.5, 1.5, 100_003).astype(np.float32)
    exact = values.astype(np.float64)
    kernels = {name: cuda_kernel(SOURCE, name) for name in BOUNDS}
    for name, terms in [("sum_constant", 3), *itertools.product(("sum_runtime", "sum_guarded"), (2, 3))]:
        out = gpu.zeros(exact.size - 2)
        launch_over(kernels[name], out, gpu.array(values), *BOUNDS[name] and (terms,))()
        expected = sum(exact[k : exact.size - 2 + k] for k in range(terms))
        np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-6, err_msg=f"{name}, {terms}")


@pytest.mark.gpuperf(budget_s=0.6)
def test_sums_of_an_array(cuda_kernel, gpu, gpuperf):
    n = 2**26
    given = gpu.random(n, seed=331, low=0.5, high=1.5)
    out = gpu.empty(n - 2)

    def check():
        gpu.assert_allclose(out, given[:-2].astype("float64") + given[1:-1] + given[2:], rtol=1e-6)
        out.fill(0)  # what the next kernel does not write is seen

    def measure(name):
        launch = launch_over(cuda_kernel(SOURCE, name), out, given, *BOUNDS[name])
        return gpuperf(launch, bytes=2 * given.nbytes, flops=2 * n, check=check)

    runtime, constant, guarded = (measure(name) for name in BOUNDS)
    assert constant.time_ns < runtime.time_ns
    assert guarded.time_ns < 1.1 * constant.time_ns  # an unknown bound costs nothing where every index is a literal
