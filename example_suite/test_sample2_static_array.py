"""Columns counted at run time, or by a template argument.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 2).
"""

import counters
import numpy as np
import pytest
from launching import blocks_over

from pytest_gpuperf.compile.compile_errors import CompileError

SOURCE = "kernels/sample2_static_array.cu"
BLOCK = 256
FORESEEN = (1, 2, 3)
"""Numbers of columns that the template version has an instantiation for."""


def static_kernel(cuda_kernel, columns):
    return cuda_kernel(SOURCE, "add_rows_static", name_expression=f"add_rows_static<{columns}>")


def grid_over(rows):
    return (blocks_over(rows, BLOCK),)


def test_every_column_gains_the_sum_of_its_row(cuda_kernel, gpu, claim):
    rows = 10_007
    rng = np.random.default_rng(290)
    counted = [cuda_kernel(SOURCE, name) for name in ("add_rows_naive", "add_rows_stack")]
    kernels = {columns: static_kernel(cuda_kernel, columns) for columns in FORESEEN}
    right = 0
    for columns, kernel in kernels.items():
        before, terms = rng.uniform(0.5, 1.5, (2, columns, rows)).astype(np.float32)
        expected = before.astype(np.float64) + 10 * terms.astype(np.float64).sum(axis=0)
        for variant in (*counted, kernel):
            a = gpu.array(before)
            variant.launch(grid=grid_over(rows), block=(BLOCK,), args=(a, gpu.array(terms), rows, columns))()
            np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=f"{variant.name}, {columns}")
        right += 1
    claim("S2-04", right)


def test_columns_that_nobody_foresaw_do_not_compile(cuda_kernel):
    with pytest.raises(CompileError, match="a row has one to three columns"):
        static_kernel(cuda_kernel, 4)


@pytest.mark.gpuperf(budget_s=0.6)
def test_adding_to_rows(cuda_kernel, gpu, gpuperf, claim):
    naive = cuda_kernel(SOURCE, "add_rows_naive")
    static = static_kernel(cuda_kernel, 3)
    stack = cuda_kernel(SOURCE, "add_rows_stack")
    for profile in static.profiles.values():
        assert (profile.opcodes["global_load"], profile.opcodes["global_store"]) == (6, 3)
    claim("S2-02", max(profile.stack_bytes for profile in static.profiles.values()))
    claim("S2-05", min(profile.stack_bytes for profile in stack.profiles.values()))

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
        launch = kernel.launch(grid=grid_over(rows), block=(BLOCK,), args=(a, b, rows, 3))
        return gpuperf(launch, name=name, bytes=3 * a.nbytes, flops=90 * rows, check=check, reset=restore)

    counted = measure(naive, "naive")
    known = measure(static, "static")
    arrays_alone = measure(stack, "stack")

    claim("S2-03", lambda: counters.requests(counted, "st") * 32 / rows)
    assert known.bandwidth >= 0.6 * gpu.copy_bandwidth
    claim("S2-01", counted.time_ns / known.time_ns, because=[lambda: counters.l2_throughput(counted)])
    # The control: arrays as in the fast version, less what makes them registers.
    claim("S2-06", arrays_alone.time_ns / known.time_ns)
