"""Which index of a matrix product runs along threadIdx.x: the layout decides.

From the "Optimization" chapter of a CUDA course.
"""

import counters
import numpy as np
import pytest

SOURCE = "kernels/matmul_layout.cu"
KERNELS = ("columns_along_x", "rows_along_x")
LAYOUTS = {"RowMajor": "C", "ColumnMajor": "F"}
"""With NumPy's name of it."""
CASES = [(name, layout) for layout in LAYOUTS for name in KERNELS]
BLOCK = (32, 8)


def kernel_of(cuda_kernel, name, layout):
    return cuda_kernel(SOURCE, name, name_expression=f"{name}<{layout}>")


def launch_over(kernel, a, b, c):
    n = len(a)
    return kernel.launch(grid=(n // BLOCK[0], n // BLOCK[1]), block=BLOCK, args=(a, b, c, n))


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_product_is_right(cuda_kernel, gpu, name, layout):
    n = 96
    a, b = (np.random.default_rng(seed).uniform(-1, 1, (n, n)).astype(np.float32) for seed in (410, 411))
    order = LAYOUTS[layout]
    c = gpu.full((n, n), float("nan"))
    on_gpu = [gpu.array(matrix.ravel(order).reshape(n, n)) for matrix in (a, b)]
    launch_over(kernel_of(cuda_kernel, name, layout), *on_gpu, c)()
    found = gpu.to_host(c).ravel().reshape(n, n, order=order)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=0, atol=1e-6 * n)


def instructions_apart(one, other):
    """How many loads, stores and multiply-adds one has more or less than the other, at most."""
    kinds = ("global_load", "global_store", "fp32")
    return max(
        abs(profile.opcodes[kind] - other.profiles[arch].opcodes[kind])
        for arch, profile in one.profiles.items() for kind in kinds
    )  # fmt: skip


@pytest.mark.gpuperf(budget_s=0.6)
def test_products_of_large_matrices(cuda_kernel, gpu, gpuperf, claim):
    kernels = {case: kernel_of(cuda_kernel, *case) for case in CASES}
    claim("ML-05", max(instructions_apart(*(kernels[name, layout] for name in KERNELS)) for layout in LAYOUTS))
    n = 768
    a, b = (gpu.random((n, n), seed=seed, low=-1, high=1) for seed in (412, 413))

    def measure(name, layout):
        c = gpu.full((n, n), float("nan"))

        def check():  # Freivalds: C x = A (B x) for a random x; matrices by columns are transposed
            x = gpu.random(n, seed=414, low=-1, high=1).astype("float64")
            first, second, product = (matrix if layout == "RowMajor" else matrix.T for matrix in (a, b, c))
            gpu.assert_allclose(times(product, x), times(first, times(second, x)), rtol=0, atol=0.01)

        launch = launch_over(kernels[name, layout], a, b, c)
        return gpuperf(launch, name=f"{name} of {layout}", bytes=3 * a.nbytes, flops=2 * n**3, check=check)

    runs = {case: measure(*case) for case in CASES}
    time = {case: run.time_ns for case, run in runs.items()}
    claim("ML-01", time["rows_along_x", "RowMajor"] / time["columns_along_x", "RowMajor"])
    claim("ML-02", time["columns_along_x", "ColumnMajor"] / time["rows_along_x", "ColumnMajor"])
    claim("ML-03", lambda: counters.sectors_per_request(runs["columns_along_x", "RowMajor"], "ld"))
    claim("ML-04", lambda: counters.sectors_per_request(runs["rows_along_x", "RowMajor"], "ld"))


def times(matrix, vector):
    """Matrix times vector in float64, by plain sums."""
    return (matrix.astype("float64") * vector).sum(axis=1)
