"""Adding up an array: barriers, warp shuffles, and enough work per thread.

From the "Optimization" chapter of a CUDA course.
"""

import functools

import counters
import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/reduce_sum.cu"
BLOCK = 256
BARRIERS = {"reduce_tree": 9, "reduce_tree_shfl": 4, "reduce_shfl": 1, "reduce_grid_stride": 1}
"""Barrier instructions in the machine code."""
ELEMENTS_PER_THREAD = {"reduce_grid_stride": 64}
"""16 float4; one element for the others."""


def grid_over(name, n):
    return (blocks_over(n, BLOCK * ELEMENTS_PER_THREAD.get(name, 1)),)


def test_partial_sums_add_up(cuda_kernel, gpu):
    kernels = {name: cuda_kernel(SOURCE, name) for name in BARRIERS}
    for n in (1, 255, 3 * 16_384 + 2, 1_000_003):
        given = gpu.random(n, seed=250)
        for name, kernel in kernels.items():
            grid = grid_over(name, n)
            partial = gpu.full(grid, float("nan"))
            kernel.launch(grid=grid, block=(BLOCK,), args=(given, partial, n))()
            found = gpu.to_host(partial).astype(np.float64)
            values = gpu.to_host(given).astype(np.float64)
            where = f"{name} of {n} elements"
            np.testing.assert_allclose(found.sum(), values.sum(), rtol=1e-5, err_msg=where)
            if name not in ELEMENTS_PER_THREAD:  # block by block, too
                blocks = np.add.reduceat(values, np.arange(0, n, BLOCK))
                np.testing.assert_allclose(found, blocks, rtol=1e-5, err_msg=where)


def test_lane_0_holds_the_sum_of_its_warp(cuda_kernel, gpu, claim):
    values = np.random.default_rng(251).permutation(32).astype(np.float32) ** 2
    out = gpu.zeros(1)
    cuda_kernel(SOURCE, "sum_one_warp").launch(grid=(1,), block=(32,), args=(gpu.array(values), out))()
    claim("RED-04", float(gpu.to_host(out)[0]))


def test_sum_of_an_array(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in BARRIERS}
    for name, kernel in kernels.items():
        for profile in kernel.profiles.values():
            assert profile.opcodes["barrier"] == BARRIERS[name]
            assert profile.shared_bytes == (32 if BARRIERS[name] == 1 else 1024)

    n = 2**28
    given = gpu.random(n, seed=252)
    longest = max(grid_over(name, n) for name in BARRIERS)

    @functools.cache
    def total():
        return float(given.sum(dtype="float64"))

    def measure(name):
        partial = gpu.zeros(longest)  # for all, so that any of them can stand in for another

        def check():
            assert float(partial.sum(dtype="float64")) == pytest.approx(total(), rel=1e-5)

        launch = kernels[name].launch(grid=grid_over(name, n), block=(BLOCK,), args=(given, partial, n))
        return gpuperf(launch, bytes=given.nbytes, flops=n, check=check)

    tree, tree_shfl, shfl, grid_stride = (measure(name) for name in kernels)

    at_barriers = functools.partial(counters.stall_share, reason="barrier")
    claim("RED-02", lambda: at_barriers(tree_shfl) / at_barriers(tree))
    claim("THR-06", lambda: at_barriers(tree))
    claim("THR-10", lambda: at_barriers(shfl))
    claim("RED-01", tree.time_ns / tree_shfl.time_ns)
    claim("RED-03", grid_stride.bandwidth / gpu.copy_bandwidth)
    claim("RED-05", tree.bandwidth / gpu.copy_bandwidth)
    # The control: with all barriers but one gone, what is left is one load per thread; four of 16 bytes gain far more.
    without_barriers = tree.time_ns / shfl.time_ns
    assert 1 <= without_barriers <= 0.6 * shfl.time_ns / grid_stride.time_ns
