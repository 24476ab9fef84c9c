"""A branch that splits warps in half, or takes whole warps.

From R. Bourgeois, "Five basic performance advice for porting kernels to the GPU" (sample 8).
"""

import math

import counters
import numpy as np
import pytest

SOURCE = "kernels/sample8_divergent_reduce.cu"
BLOCK = 256
WARP = 32
KERNELS = ("sum_by_half_warp", "sum_by_warp", "sum_by_selection")
MEAN = 1 / 4 + (1 - math.exp(-1)) / 2
"""Half of the integral of x over [0, 1), and half of that of exp(-x)."""


def compile_all(cuda_kernel):
    return {name: cuda_kernel(SOURCE, name) for name in KERNELS}


def stretch_of(n, warps):
    """Elements of one warp, so that the warps together have at least n."""
    return -(-n // (warps * WARP)) * WARP


def launch_over(kernel, partial, n):
    warps = partial.size
    return kernel.launch(grid=(warps * WARP // BLOCK,), block=(BLOCK,), args=(partial, n, stretch_of(n, warps)))


def terms_of(name, n):
    """What each element adds, in float64."""
    i = np.arange(n)
    x = i / n
    is_cheap = i % 64 < 32 if name == "sum_by_warp" else i % 32 < 16
    return np.where(is_cheap, x, np.exp(-x))


def test_every_stretch_adds_up(cuda_kernel, gpu):
    n, warps = 100_003, 24
    starts = np.arange(0, n, stretch_of(n, warps))
    for name, kernel in compile_all(cuda_kernel).items():
        partial = gpu.full(warps, float("nan"), dtype="float64")
        launch_over(kernel, partial, n)()
        expected = np.zeros(warps)
        expected[: len(starts)] = np.add.reduceat(terms_of(name, n), starts)
        np.testing.assert_allclose(gpu.to_host(partial), expected, rtol=1e-5, err_msg=name)


def test_the_elements_that_take_a_path_differ_and_the_sums_do_not(cuda_kernel, gpu, claim):
    kernels = compile_all(cuda_kernel)

    def sums_of_warps(name, n, warps):
        partial = gpu.zeros(warps, dtype="float64")
        launch_over(kernels[name], partial, n)()
        return gpu.to_host(partial)

    half, whole = (sums_of_warps(name, 8 * WARP, 8) for name in ("sum_by_half_warp", "sum_by_warp"))
    claim("S8-04", int(np.count_nonzero(~np.isclose(half, whole, rtol=1e-4))))
    half, whole = (sums_of_warps(name, 2**24, 8 * 64).sum() for name in ("sum_by_half_warp", "sum_by_warp"))
    claim("S8-05", half / whole)


@pytest.mark.gpuperf(budget_s=0.8, cache="warm")
def test_reduction_with_a_branch(cuda_kernel, gpu, gpuperf, claim):
    kernels = compile_all(cuda_kernel)
    for arch, profile in kernels["sum_by_warp"].profiles.items():
        assert profile.opcodes == kernels["sum_by_half_warp"].profiles[arch].opcodes
        assert profile.stack_bytes == 0

    n = 2**28
    warps = gpu.sm_count * gpu.max_threads_per_sm // WARP

    def measure(name):
        partial = gpu.zeros(warps, dtype="float64")

        def check():
            assert float(partial.sum()) / n == pytest.approx(MEAN, rel=1e-4)

        return gpuperf(launch_over(kernels[name], partial, n), check=check)

    by_half_warp, by_warp, by_selection = (measure(name) for name in KERNELS)

    def branches_of_whole_warps():
        assert counters.active_lanes(by_warp) > 31
        return counters.divergent_targets(by_warp)

    claim("S8-02", lambda: counters.active_lanes(by_half_warp))
    claim("S8-06", lambda: counters.lanes_not_predicated_off(by_half_warp))
    claim("S8-03", branches_of_whole_warps)
    claim(
        "S8-01",
        by_half_warp.time_ns / by_warp.time_ns,
        because=[lambda: counters.instructions(by_half_warp) / counters.instructions(by_warp)],
    )
    # The control: without a branch every warp does what is on both paths, and a split warp does no less.
    assert by_selection.time_ns == pytest.approx(by_half_warp.time_ns, rel=0.2)
