"""An array that is indexed at run time lives in local memory.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 4).
"""

import numpy as np
import pytest

SOURCE = "kernels/sample4_local_memory.cu"


def indexed(cuda_kernel, columns):
    return cuda_kernel(SOURCE, "add_indexed", name_expression=f"add_indexed<{columns}>")


def test_columns_gain_what_their_row_names(cuda_kernel, gpu):
    rng = np.random.default_rng(320)
    before, terms = rng.uniform(0.5, 1.5, (2, 4, 1003)).astype(np.float32)
    some_twice_some_never = rng.integers(0, 4, (4, 1003), dtype=np.int32)
    times_named = np.stack([(some_twice_some_never == column).sum(axis=0) for column in range(4)])
    expected = before.astype(np.float64) + 10 * times_named * terms.astype(np.float64).sum(axis=0)
    pick, *others = (cuda_kernel(SOURCE, name) for name in ("pick_of_three", "add_switch", "add_chain"))
    for kernel in [indexed(cuda_kernel, 4), *others]:
        a = gpu.array(before)
        kernel.launch(4, 256, (a, gpu.array(terms), gpu.array(some_twice_some_never), 1003))()
        np.testing.assert_allclose(gpu.to_host(a), expected, rtol=1e-5, err_msg=kernel.name)
    three, picked, out = rng.random((256, 3)), rng.integers(0, 3, 256, dtype=np.int32), gpu.zeros(256, "float64")
    pick.launch(1, 256, (out, gpu.array(three), gpu.array(picked)))()
    np.testing.assert_allclose(gpu.to_host(out), three.sum(axis=1) + three[np.arange(256), picked], rtol=1e-12)


def measure(gpu, gpuperf, kernel, name, columns, rows, seed):
    start, b = (gpu.random((columns, rows), seed=one, low=0.5, high=1.5) for one in (seed, seed + 1))
    a, named = gpu.empty_like(start), gpu.empty((columns, rows), dtype="int32")

    def restore():
        a[...] = start
        for d in range(columns):
            named[d] = (d + 1) % columns

    def check():
        gain = 10 * b.sum(axis=0)
        for d in range(columns):  # one by one, for the memory that a comparison takes
            gpu.assert_allclose(a[d], start[d] + gain, rtol=1e-5)

    launch, flops = kernel.launch(-(-rows // 256), 256, (a, b, named, rows)), 10 * columns**2 * rows
    return gpuperf(launch, name=name, bytes=4 * a.nbytes, flops=flops, check=check, reset=restore)


def test_adding_rows(cuda_kernel, gpu, gpuperf):
    on_stack = measure(gpu, gpuperf, indexed(cuda_kernel, 4), "add_indexed", 4, 2**26, 322)
    switch = measure(gpu, gpuperf, cuda_kernel(SOURCE, "add_switch"), "add_switch", 4, 2**26, 322)
    assert switch.time_ns < on_stack.time_ns
    assert switch.bandwidth >= 0.8 * gpu.copy_bandwidth


@pytest.mark.gpuperf(budget_s=0.3)
def test_an_index_alone_costs_no_stack(cuda_kernel, gpu, gpuperf):
    run = measure(gpu, gpuperf, indexed(cuda_kernel, 3), "three columns", 3, 2**27, 324)
    assert run.bandwidth >= 0.6 * gpu.copy_bandwidth  # this compiler selects among three registers
