"""What the documents say about the hardware, measured.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application" and R. Bourgeois, "Five basic performance advice for porting
kernels to the GPU".  Nothing here is timed by the plugin: cycles are read from the SM's own clock.
"""

import numpy as np
import pytest
from launching import blocks_over

from pytest_gpuperf.compile.cubin.occupancy import limits_of, occupancy_of

SOURCE = "kernels/hardware_facts.cu"
STEPS = 4096
FULL_BLOCK = 1024
FACTOR, TERM = 1_664_525, 1_013_904_223
"""Of the generator that numbers the lines of a list; "Numerical Recipes" has it."""
LINES = {"L1": 2**6, "L2": 2**16, "DRAM": 2**23}
"""Of 128 bytes: 8 KB, 8 MB, 1 GB."""


def needs_hopper(gpu):
    if gpu.available and gpu.compute_capability != (9, 0):
        pytest.skip(f"the figures expected are Hopper's, this is {gpu.name}")


def cycles_of(kernel, gpu, threads, dtype, expected, operands=()):
    """From the first warp's start to the last one's end, of all steps."""
    out = gpu.zeros(threads, dtype=dtype)
    begin, end = (gpu.zeros(threads // 32, dtype="int64") for _ in range(2))
    launch = kernel.launch(grid=(1,), block=(threads,), args=(out, begin, end, STEPS, *operands))
    for _ in range(2):  # the second run has the code in the instruction cache
        launch()
    np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-6, err_msg=kernel.name)
    return float(gpu.to_host(end).max() - gpu.to_host(begin).min())


def sum_of_steps(dtype):
    return np.add.accumulate(np.full(STEPS, 1.1, dtype=dtype))[-1]


def after_steps(start, steps, modulus):
    """What becomes of a number that is multiplied and added to."""
    for _ in range(steps):
        start = (start * FACTOR + TERM) % modulus
    return start


def test_lanes_of_an_sm(cuda_kernel, gpu, claim):
    needs_hopper(gpu)
    operands = (np.uint32(FACTOR), np.uint32(TERM))
    kinds = {
        "steps_fp32": (128, "float32", sum_of_steps("float32"), ()),
        "steps_fp64": (64, "float64", sum_of_steps("float64"), ()),
        "steps_int32": (64, "uint32", after_steps(1, STEPS, 2**32), operands),
        "steps_special": (16, "float32", 1.0, ()),
    }
    kernels = {name: cuda_kernel(SOURCE, name) for name in kinds}
    lanes = {
        name: STEPS * FULL_BLOCK / cycles_of(kernels[name], gpu, FULL_BLOCK, *of_kind)
        for name, (_, *of_kind) in kinds.items()
    }
    fp32 = lanes.pop("steps_fp32")
    for name, found in lanes.items():
        assert found == pytest.approx(kinds[name][0], rel=0.1), name
    assert 0.85 * 128 <= fp32 <= 128
    reason = "the loop keeps 115 of the 128 lanes of an H200 busy: what it issues besides takes its share"
    claim.refuted("HW-11", fp32, holds=abs(fp32 - 128) <= 10, reason=reason)


def test_what_a_load_costs(cuda_kernel, gpu, claim):
    needs_hopper(gpu)
    fma, link, follow = (cuda_kernel(SOURCE, name) for name in ("steps_fma_fp64", "link_lines", "follow_lines"))
    factor, term = 0.999, 0.25
    power = factor**STEPS
    expected = power + term * (1 - power) / (1 - factor)
    cycles_of_fma = cycles_of(fma, gpu, 32, "float64", expected, (factor, term)) / STEPS

    def cycles_of_load(count, warm_up):
        lines = gpu.empty((count, 16), dtype="uint64")
        link.launch(grid=(blocks_over(count, 256),), block=(256,), args=(lines, count, FACTOR, TERM))()
        reached, cycles = gpu.zeros(1, dtype="uint32"), gpu.zeros(1, dtype="int64")
        follow.launch(grid=(1,), block=(1,), args=(lines, warm_up, STEPS, reached, cycles))()
        assert int(gpu.to_host(reached)[0]) == after_steps(0, warm_up + STEPS, count)
        return float(gpu.to_host(cycles)[0]) / STEPS

    # One round through the list brings it into the cache; into that of the list of 1 GB, nothing does.
    in_fmas = {
        level: cycles_of_load(count, warm_up=64 if level == "DRAM" else count) / cycles_of_fma
        for level, count in LINES.items()
    }
    assert 3 <= in_fmas["L1"] <= 12
    assert 15 <= in_fmas["L2"] <= 60
    claim("HW-12", in_fmas["DRAM"], between=(50, 200))


def test_a_store_goes_through_the_l1(cuda_kernel, gpu, claim):
    """That the L2 writes back is for the counters to show."""
    kernel = cuda_kernel(SOURCE, "hand_over")
    letter, answer, arrived, sm = (gpu.zeros(length, dtype="int32") for length in (1, 1, 2, 2))
    kernel.launch(grid=(2,), block=(1,), args=(letter, answer, 2026, arrived, sm))()
    first, second = gpu.to_host(sm)
    assert first != second  # on one SM the L1 would be the same
    claim("HW-07", int(gpu.to_host(arrived).sum()), equals=2)


def test_what_an_a100_holds(claim):
    claim("HW-09", limits_of("sm_80").shared_bytes_per_sm / 1024, equals=164)
    in_256_kb = occupancy_of(registers=64, shared_bytes=0, block_threads=1024, arch="sm_80")
    assert in_256_kb.warps_per_sm * 32 * 64 * 4 == 256 * 1024


def test_blocks_of_a_cluster_run_together(cuda_kernel, gpu, claim):
    if gpu.available and gpu.compute_capability < (9, 0):
        pytest.skip(f"clusters came with Hopper, this is {gpu.name}")
    kernel = cuda_kernel(SOURCE, "exchange_in_cluster", arch="sm_90")
    given = gpu.random((4, 2, 32), dtype="int32", seed=410)
    out = gpu.zeros(given.shape, dtype="int32")
    kernel.launch(grid=(8,), block=(32,), args=(out, given))()
    claim("HW-10", int((gpu.to_host(out) == gpu.to_host(given)[:, ::-1]).sum()), equals=given.size)
