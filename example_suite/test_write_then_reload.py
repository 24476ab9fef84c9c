"""Values written in one pass and read again in the next: where they wait.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU".
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/write_then_reload.cu"
BLOCK = 256
VARIANTS = ("scratch_rows", "scratch_columns", "in_shared")


def below_largest(values):
    """How far each square is below the largest of its column, in float64; for NumPy and CuPy arrays."""
    squares = values.astype("float64") ** 2
    return squares.max(axis=0) - squares


def launch_over(kernel, out, values, scratch):
    count, threads = values.shape
    in_shared = 4 * count * BLOCK if kernel.name == "in_shared" else 0
    args = (out, values, scratch, threads, count)
    return kernel.launch(grid=(-(-threads // BLOCK),), block=(BLOCK,), args=args, shared_bytes=in_shared)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("count", [1, 5, 32])
def test_differences_are_right(cuda_kernel, gpu, name, count):
    values = gpu.random((count, 2 * BLOCK + 77), seed=440, low=-1, high=1)
    out, scratch = gpu.empty(values.shape), gpu.empty(values.shape)
    launch_over(cuda_kernel(SOURCE, name), out, values, scratch)()
    np.testing.assert_allclose(gpu.to_host(out), below_largest(gpu.to_host(values)), rtol=0, atol=2e-7)


@pytest.mark.gpuperf(budget_s=0.2)
def test_two_passes(cuda_kernel, gpu, gpuperf):
    values = gpu.random((32, 2**20), seed=441, low=-1, high=1)
    one_each, scratch = values.reshape(1, values.size), gpu.empty(values.size)
    expected = functools.cache(lambda: below_largest(values))
    nothing = functools.cache(lambda: gpu.zeros(one_each.shape))

    def measure(name, given, wanted, label=""):
        out = gpu.empty(given.shape)
        launch = launch_over(cuda_kernel(SOURCE, name), out, given, scratch)
        check = functools.partial(gpu.assert_allclose, out, rtol=0, atol=2e-7)
        return gpuperf(launch, name=name + label, bytes=2 * values.nbytes, check=lambda: check(wanted()))

    rows, columns, shared = (measure(name, values, expected) for name in VARIANTS)
    rows_of_one, columns_of_one = (measure(name, one_each, nothing, ", one value") for name in VARIANTS[:2])

    assert shared.time_ns < columns.time_ns < rows.time_ns
    # With one value per thread, rows and columns are the same addresses.
    assert rows_of_one.time_ns == pytest.approx(columns_of_one.time_ns, rel=0.1)
