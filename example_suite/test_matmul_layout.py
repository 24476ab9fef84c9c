"""Which index of a matrix product runs along threadIdx.x: the layout decides.

From the "Optimization" chapter of a CUDA course.
"""

import numpy as np
import pytest

SOURCE = "kernels/matmul_layout.cu"
LAYOUTS = {"RowMajor": "C", "ColumnMajor": "F"}
"""With NumPy's name of it."""
CASES = [(name, layout) for layout in LAYOUTS for name in ("columns_along_x", "rows_along_x")]
BLOCK = (32, 8)


def launch_over(cuda_kernel, name, layout, a, b, c):
    n = len(a)
    kernel = cuda_kernel(SOURCE, name, name_expression=f"{name}<{layout}>")
    return kernel.launch(grid=(n // BLOCK[0], n // BLOCK[1]), block=BLOCK, args=(a, b, c, n))


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_product_is_right(cuda_kernel, gpu, name, layout):
    n = 96
    a, b = (np.random.default_rng(seed).uniform(-1, 1, (n, n)).astype(np.float32) for seed in (410, 411))
    order = LAYOUTS[layout]
    c = gpu.empty((n, n))
    launch_over(cuda_kernel, name, layout, *(gpu.array(matrix.ravel(order).reshape(n, n)) for matrix in (a, b)), c)()
    found = gpu.to_host(c).ravel().reshape(n, n, order=order)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=0, atol=1e-6 * n)


@pytest.mark.gpuperf(budget_s=0.6)
def test_products_of_large_matrices(cuda_kernel, gpu, gpuperf):
    n = 768
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (412, 413))

    def measure(name, layout):
        c = gpu.empty((n, n))

        def check():  # Freivalds: C x = A (B x) for a random x; matrices by columns are transposed
            x = gpu.random(n, seed=414, low=-1, high=1).astype("float64")
            first, second, product = (matrix if layout == "RowMajor" else matrix.T for matrix in (a, b, c))
            gpu.assert_allclose(times(product, x), times(first, times(second, x)), rtol=0, atol=0.01)

        launch = launch_over(cuda_kernel, name, layout, a, b, c)
        return gpuperf(launch, name=f"{name} of {layout}", bytes=3 * a.nbytes, flops=2 * n**3, check=check)

    columns_of_rows, rows_of_rows, columns_of_columns, rows_of_columns = (measure(*case) for case in CASES)
    assert columns_of_rows.time_ns < rows_of_rows.time_ns
    assert rows_of_columns.time_ns < columns_of_columns.time_ns


def times(matrix, vector):
    """Matrix times vector in float64, by plain sums."""
    return (matrix.astype("float64") * vector).sum(axis=1)
