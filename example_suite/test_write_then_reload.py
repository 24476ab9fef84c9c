"""Values written in one pass and read again in the next: where they wait.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU".
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/write_then_reload.cu"
BLOCK = 256
VARIANTS = ("scratch_rows", "scratch_columns", "in_shared")
COUNT = 32
"""Values of a thread."""


def below_largest(values):
    """How far each square is below the largest of its column, in float64; for NumPy and CuPy arrays."""
    squares = values.astype("float64") ** 2
    return squares.max(axis=0) - squares


def launch_over(kernel, out, values, scratch):
    count, threads = values.shape
    in_shared = 4 * count * BLOCK if kernel.name == "in_shared" else 0
    args = (out, values, scratch, threads, count)
    return kernel.launch(grid=(blocks_over(threads, BLOCK),), block=(BLOCK,), args=args, shared_bytes=in_shared)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("count", [1, 5, COUNT])
def test_differences_are_right(cuda_kernel, gpu, name, count):
    values = gpu.random((count, 2 * BLOCK + 77), seed=440, low=-1, high=1)
    out, scratch = gpu.empty(values.shape), gpu.empty(values.shape)
    launch_over(cuda_kernel(SOURCE, name), out, values, scratch)()
    np.testing.assert_allclose(gpu.to_host(out), below_largest(gpu.to_host(values)), rtol=0, atol=2e-7)


@pytest.mark.gpuperf(budget_s=0.2)
def test_two_passes(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in VARIANTS}
    for arch in kernels["in_shared"].profiles:
        rows, columns, shared = (kernel.profiles[arch].opcodes for kernel in kernels.values())
        assert rows["global_load"] == columns["global_load"] == 2 * shared["global_load"]
        assert rows["global_store"] == columns["global_store"] == 2 * shared["global_store"]
        assert shared["shared_load"] == shared["shared_store"] == shared["global_load"]

    n = 2**25
    values = gpu.random((COUNT, n // COUNT), seed=441, low=-1, high=1)
    one_each = values.reshape(1, n)
    scratch = gpu.empty(n)
    expected = functools.cache(lambda: below_largest(values))

    def measure(name, given, wanted, label=""):
        out = gpu.empty(given.shape)

        def check():
            gpu.assert_allclose(out, wanted(), rtol=0, atol=2e-7)

        launch = launch_over(kernels[name], out, given, scratch)
        return gpuperf(launch, name=name + label, bytes=2 * values.nbytes, check=check)

    rows, columns, shared = (measure(name, values, expected) for name in VARIANTS)
    nothing = functools.cache(lambda: gpu.zeros((1, n)))
    rows_of_one, columns_of_one = (measure(name, one_each, nothing, ", one value") for name in VARIANTS[:2])

    claim("WTR-01", rows.time_ns / columns.time_ns)
    claim("WTR-04", columns.time_ns / shared.time_ns)
    claim("WTR-05", rows_of_one.time_ns / columns_of_one.time_ns)
    claim("WTR-06", lambda: counters.sectors_per_request(rows, "st") / counters.sectors_per_request(columns, "st"))
