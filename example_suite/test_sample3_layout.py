"""The same loop over two layouts of a matrix.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 3).
"""

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/sample3_layout.cu"
BLOCK = 256
KERNELS = {"sum_rows": np.float32, "sum_columns": np.float32, "sum_rows_of_doubles": np.float64}
"""And the type of their numbers."""
LAYOUTS = ("ColumnMajor", "RowMajor")


def compile_layouts(cuda_kernel, *names):
    return {
        (name, layout): cuda_kernel(SOURCE, name, name_expression=f"{name}<{layout}>")
        for name in names
        for layout in LAYOUTS
    }


def matrix_of(values, rows, columns, layout):
    """The flat ``values`` as the rows and columns that the kernel takes them for; for NumPy and CuPy."""
    return values.reshape(rows, columns) if layout == "RowMajor" else values.reshape(columns, rows).T


def launch_over(kernel, sums, values, rows, columns):
    return kernel.launch(grid=(blocks_over(sums.size, BLOCK),), block=(BLOCK,), args=(sums, values, rows, columns))


def test_sums_are_right(cuda_kernel, gpu):
    rows, columns = 1003, 517
    for (name, layout), kernel in compile_layouts(cuda_kernel, *KERNELS).items():
        values = np.random.default_rng(310).random(rows * columns, dtype=KERNELS[name])
        sums = gpu.zeros(columns if name == "sum_columns" else rows, dtype=KERNELS[name])
        launch_over(kernel, sums, gpu.array(values), rows, columns)()
        matrix = matrix_of(values.astype(np.float64), rows, columns, layout)
        expected = matrix.sum(axis=0 if name == "sum_columns" else 1)
        np.testing.assert_allclose(gpu.to_host(sums), expected, rtol=1e-5, err_msg=f"{name} of {layout}")


@pytest.mark.gpuperf(budget_s=0.6)
def test_sums_of_a_matrix(cuda_kernel, gpu, gpuperf, claim):
    claim.skipped(
        "S3-07",
        "a figure of a whole application; what a Morton order gains by itself is shown by md_tile_spatial_sort",
    )
    kernels = compile_layouts(cuda_kernel, "sum_rows", "sum_columns")
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
    assert_what_counters_say(runs["sum_rows", "ColumnMajor"], runs["sum_rows", "RowMajor"], claim)
    time = {variant: run.time_ns for variant, run in runs.items()}

    claim("S3-05", runs["sum_rows", "ColumnMajor"].bandwidth / gpu.copy_bandwidth, at_least=0.8)
    claim("S3-06", time["sum_columns", "ColumnMajor"] / time["sum_columns", "RowMajor"], at_least=1.3)
    penalty = time["sum_rows", "RowMajor"] / time["sum_rows", "ColumnMajor"]
    assert penalty >= 1.5
    reason = (
        "row-major it is slower, as claimed, and by more than the 1.5 to 4 that were predicted for an H200: 4.00 to "
        "4.08 on six of them, for eight times the sectors"
    )
    claim.refuted("S3-01", penalty, holds=penalty < 3.95, reason=reason)


def assert_what_counters_say(fast, slow, claim):
    def used_by_the_slow():
        assert counters.bytes_used_per_sector(fast) == pytest.approx(32, abs=0.5)
        return counters.bytes_used_per_sector(slow)

    def touched_by_the_slow():
        assert counters.sectors_per_request(fast, "ld") == 4
        return counters.sectors_per_request(slow, "ld")

    def hits_of_the_slow():
        assert counters.l1_hit_rate(fast) <= 5
        return counters.l1_hit_rate(slow)

    claim.counter("S3-02", used_by_the_slow, equals=4, tol=0.1)
    claim.counter("S3-03", touched_by_the_slow, equals=32)
    claim.counter("S3-04", hits_of_the_slow, between=(50, 87.5))


@pytest.mark.gpuperf(budget_s=0.3)
def test_sums_of_doubles(cuda_kernel, gpu, gpuperf, claim):
    rows, columns = 2**21, 64
    values = gpu.random(rows * columns, dtype="float64", seed=312)
    sums = gpu.empty(rows, dtype="float64")

    def measure(layout, kernel):
        def check():
            gpu.assert_allclose(sums, matrix_of(values, rows, columns, layout).sum(axis=1), rtol=1e-12)
            sums.fill(0)  # what the next kernel does not write is seen

        launch = launch_over(kernel, sums, values, rows, columns)
        return gpuperf(launch, name=layout, bytes=values.nbytes + sums.nbytes, flops=values.size, check=check)

    kernels = compile_layouts(cuda_kernel, "sum_rows_of_doubles")
    fast, slow = (measure(layout, kernels["sum_rows_of_doubles", layout]) for layout in LAYOUTS)

    def touched_by_the_slow():
        assert counters.sectors_per_request(fast, "ld") == 8
        assert counters.bytes_used_per_sector(slow) == 8  # of 32
        return counters.sectors_per_request(slow, "ld")

    claim.counter("S3-08", touched_by_the_slow, equals=32)
    assert slow.time_ns >= 1.3 * fast.time_ns
