"""Columns counted at run time, or by a template argument.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 2).
"""

import numpy as np
import pytest

SOURCE = "kernels/sample2_static_array.cu"


def static_kernel(cuda_kernel, columns):
    return cuda_kernel(SOURCE, "add_rows_static", name_expression=f"add_rows_static<{columns}>")


def launch_over(kernel, a, b):
    columns, rows = a.shape
    return kernel.launch(grid=-(-rows // 256), block=256, args=(a, b, rows, columns))


def test_every_column_gains_the_sum_of_its_row(cuda_kernel, gpu):
    rng = np.random.default_rng(290)
    counted = [cuda_kernel(SOURCE, name) for name in ("add_rows_naive", "add_rows_stack")]
    for columns, kernel in [(columns, static_kernel(cuda_kernel, columns)) for columns in (1, 2, 3)]:
        before, terms = rng.uniform(0.5, 1.5, (2, columns, 10_007)).astype(np.float32)
        expected = before.astype(np.float64) + 10 * terms.astype(np.float64).sum(axis=0)
        for variant in (*counted, kernel):
            a = gpu.array(before)
            launch_over(variant, a, gpu.array(terms))()
            np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=f"{variant.name}, {columns}")


@pytest.mark.gpuperf(budget_s=0.6)
def test_adding_to_rows(cuda_kernel, gpu, gpuperf):
    rows = 2**24
    start = gpu.random((3, rows), seed=291, low=0.5, high=1.5)
    b = gpu.random((3, rows), seed=292, low=0.5, high=1.5)
    a = gpu.empty_like(start)

    def restore():
        a[...] = start

    def check():
        gain = 10 * b.sum(axis=0, dtype="float64")
        for d in range(3):
            gpu.assert_allclose(a[d], start[d] + gain, rtol=1e-5)

    def measure(kernel, name):
        launch = launch_over(kernel, a, b)
        return gpuperf(launch, name=name, bytes=3 * a.nbytes, flops=90 * rows, check=check, reset=restore)

    naive = measure(cuda_kernel(SOURCE, "add_rows_naive"), "naive")
    static = measure(static_kernel(cuda_kernel, 3), "static")
    stack = measure(cuda_kernel(SOURCE, "add_rows_stack"), "stack")
    assert static.time_ns < stack.time_ns < naive.time_ns  # the arrays alone are not enough: they must be registers
    assert static.bandwidth >= 0.6 * gpu.copy_bandwidth
