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
    claim.not_comparable("S3-07")
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
    fast, slow = runs["sum_rows", "ColumnMajor"], runs["sum_rows", "RowMajor"]
    assert_what_counters_say(fast, slow, claim)
    time = {variant: run.time_ns for variant, run in runs.items()}

    penalty = slow.time_ns / fast.time_ns
    claim("S3-01", penalty, because=[lambda: counters.l1_throughput(slow)])
    claim("S3-12", penalty)
    # The control: the same two layouts, and a loop that goes the other way; the slow one is now the fast one.
    mirrored = time["sum_columns", "ColumnMajor"] / time["sum_columns", "RowMajor"]
    claim("S3-06", mirrored)
    assert mirrored == pytest.approx(penalty, rel=0.05)


def assert_what_counters_say(fast, slow, claim):
    def touched_by_the_slow():
        assert counters.sectors_per_request(fast, "ld") == 4
        return counters.sectors_per_request(slow, "ld")

    claim("S3-02", lambda: counters.bytes_used_per_sector(slow))
    claim("S3-03", touched_by_the_slow)
    claim("S3-04", lambda: counters.l1_hit_rate(slow) - counters.l1_hit_rate(fast))
    claim("S3-11", lambda: counters.l1_hit_rate(fast))
    claim("S3-05", lambda: counters.dram_throughput(fast))


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

    claim("S3-08", lambda: counters.sectors_per_request(slow, "ld"))
    claim("S3-09", lambda: counters.sectors_per_request(fast, "ld"))
    claim("S3-10", lambda: counters.bytes_used_per_sector(slow) / 32)
    assert slow.time_ns >= 1.3 * fast.time_ns
