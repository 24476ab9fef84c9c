"""The same loop over two layouts of a matrix.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 3).
"""

import numpy as np
import pytest

SOURCE = "kernels/sample3_layout.cu"
BLOCK = 256
KERNELS = ("sum_rows", "sum_columns")
LAYOUTS = ("ColumnMajor", "RowMajor")
COUNTERS = "a counter of Nsight Compute"


def compile_all(cuda_kernel):
    return {
        (name, layout): cuda_kernel(SOURCE, name, name_expression=f"{name}<{layout}>")
        for name in KERNELS
        for layout in LAYOUTS
    }


def matrix_of(values, rows, columns, layout):
    """The flat ``values`` as the rows and columns that the kernel takes them for; for NumPy and CuPy."""
    return values.reshape(rows, columns) if layout == "RowMajor" else values.reshape(columns, rows).T


def launch_over(kernel, sums, values, rows, columns):
    return kernel.launch(grid=(-(-sums.size // BLOCK),), block=(BLOCK,), args=(sums, values, rows, columns))


def test_sums_are_right(cuda_kernel, gpu):
    rows, columns = 1003, 517
    values = np.random.default_rng(310).random(rows * columns, dtype=np.float32)
    for (name, layout), kernel in compile_all(cuda_kernel).items():
        sums = gpu.zeros(rows if name == "sum_rows" else columns)
        launch_over(kernel, sums, gpu.array(values), rows, columns)()
        matrix = matrix_of(values.astype(np.float64), rows, columns, layout)
        expected = matrix.sum(axis=1 if name == "sum_rows" else 0)
        np.testing.assert_allclose(gpu.to_host(sums), expected, rtol=1e-5, err_msg=f"{name} of {layout}")


@pytest.mark.gpuperf(budget_s=0.6)
def test_sums_of_a_matrix(cuda_kernel, gpu, gpuperf, claim):
    for counter in ("S3-02", "S3-03", "S3-04", "S3-08"):
        claim.skipped(counter, COUNTERS)
    claim.skipped("S3-07", "a guideline for whole applications with unstructured meshes: left to the advice work")
    kernels = compile_all(cuda_kernel)
    for kernel in kernels.values():
        for profile in kernel.profiles.values():
            assert profile.opcodes["global_load"] >= 8
            assert profile.stack_bytes == 0

    many, few = 2**22, 64  # many threads: the article's 10 000 are one in 27 of what an H200 holds
    values = gpu.random(many * few, seed=311)
    sums = gpu.empty(many)

    def measure(name, layout):
        rows, columns = (many, few) if name == "sum_rows" else (few, many)

        def check():
            matrix = matrix_of(values, rows, columns, layout)
            expected = matrix.sum(axis=1 if name == "sum_rows" else 0, dtype="float64")
            gpu.assert_allclose(sums, expected, rtol=1e-5)
            sums.fill(0)  # what the next kernel does not write is seen

        launch = launch_over(kernels[name, layout], sums, values, rows, columns)
        moved = values.nbytes + sums.nbytes
        return gpuperf(launch, name=f"{name} of {layout}", bytes=moved, flops=values.size, check=check)

    runs = {variant: measure(*variant) for variant in kernels}
    time = {variant: run.time_ns for variant, run in runs.items()}

    claim("S3-05", runs["sum_rows", "ColumnMajor"].bandwidth / gpu.copy_bandwidth, at_least=0.75)
    claim("S3-06", time["sum_columns", "ColumnMajor"] / time["sum_columns", "RowMajor"], at_least=1.3)
    claim("S3-01", time["sum_rows", "RowMajor"] / time["sum_rows", "ColumnMajor"], at_least=1.5)
