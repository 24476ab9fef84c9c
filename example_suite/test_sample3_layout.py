"""The same loop over two layouts of a matrix.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 3).
"""

import numpy as np
import pytest

SOURCE = "kernels/sample3_layout.cu"
LAYOUTS = ("ColumnMajor", "RowMajor")
KERNELS = ("sum_rows", "sum_columns", "sum_rows_of_doubles")


def compiled(cuda_kernel, name):
    return {layout: cuda_kernel(SOURCE, name, name_expression=f"{name}<{layout}>") for layout in LAYOUTS}


def launch_over(kernel, sums, *args):
    return kernel.launch(grid=-(-sums.size // 256), block=256, args=(sums, *args))


def expected_sums(kernel, values, rows, columns):
    by_rows = values.reshape(rows, columns) if "RowMajor" in kernel.name else values.reshape(columns, rows).T
    return by_rows.sum(axis=0 if "sum_columns" in kernel.name else 1, dtype="float64")


def test_sums_are_right(cuda_kernel, gpu):
    rows, columns = 1003, 517
    for kernel in [kernel for name in KERNELS for kernel in compiled(cuda_kernel, name).values()]:
        values = np.random.default_rng(310).random(rows * columns, "float64" if "doubles" in kernel.name else "float32")
        sums = gpu.zeros(columns if "sum_columns" in kernel.name else rows, values.dtype)
        launch_over(kernel, sums, gpu.array(values), rows, columns)()
        expected = expected_sums(kernel, values, rows, columns)
        np.testing.assert_allclose(gpu.to_host(sums), expected, rtol=1e-5, err_msg=kernel.name)


def measure(gpu, gpuperf, called, kernel, sums, values, *sides, rtol=1e-5):
    def check():
        gpu.assert_allclose(sums, expected_sums(kernel, values, *sides), rtol=rtol)
        sums.fill(0)  # what the next kernel does not write is seen

    launch = launch_over(kernel, sums, values, *sides)
    return gpuperf(launch, name=called, bytes=values.nbytes + sums.nbytes, flops=values.size, check=check)


@pytest.mark.gpuperf(budget_s=0.6)
def test_sums_of_a_matrix(cuda_kernel, gpu, gpuperf):
    values, sums = gpu.random(2**28, seed=311), gpu.empty(2**22)
    sides = {"sum_rows": (2**22, 64), "sum_columns": (64, 2**22)}
    runs = {kernel.name: measure(gpu, gpuperf, f"{name} of {layout}", kernel, sums, values, *sides[name])
            for name in sides for layout, kernel in compiled(cuda_kernel, name).items()}  # fmt: skip
    few = gpu.random(10_000**2, seed=313), gpu.empty(10_000)  # the article's size leaves an H200 idle
    for layout, kernel in compiled(cuda_kernel, "sum_rows").items():
        measure(gpu, gpuperf, f"10 000 rows of {layout}", kernel, few[1], few[0], 10_000, 10_000)
    assert runs["sum_rows<ColumnMajor>"].time_ns < runs["sum_rows<RowMajor>"].time_ns
    assert runs["sum_columns<RowMajor>"].time_ns < runs["sum_columns<ColumnMajor>"].time_ns


@pytest.mark.gpuperf(budget_s=0.3)
def test_sums_of_doubles(cuda_kernel, gpu, gpuperf):
    values, sums = gpu.random(2**27, dtype="float64", seed=312), gpu.empty(2**21, dtype="float64")
    fast, slow = (measure(gpu, gpuperf, layout, kernel, sums, values, 2**21, 64, rtol=1e-12)
                  for layout, kernel in compiled(cuda_kernel, KERNELS[2]).items())  # fmt: skip
    assert fast.time_ns < slow.time_ns
