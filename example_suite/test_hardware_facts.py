"""What the documents say about the hardware, measured.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput", the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application" and R. Bourgeois, "Five basic performance advice for porting
kernels to the GPU".  Nothing here is timed by the plugin: cycles are read from the SM's own clock.
"""

import numpy as np
import pytest
from launching import blocks_over

SOURCE = "kernels/hardware_facts.cu"
STEPS = 4096
UNROLLED = 32
FULL_BLOCK = 1024
LONG_ENOUGH = 200_000
"""Cycles: a tenth of a millisecond, in which all blocks have started."""
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


def sum_of_steps(dtype, steps=STEPS):
    return np.add.accumulate(np.full(steps, 1.1, dtype=dtype))[-1]


def after_steps(start, steps, modulus):
    """What becomes of a number that is multiplied and added to."""
    for _ in range(steps):
        start = (start * FACTOR + TERM) % modulus
    return start


def test_lanes_of_an_sm(cuda_kernel, gpu, claim):
    needs_hopper(gpu)
    operands = (np.uint32(FACTOR), np.uint32(TERM))
    kinds = {
        "HW-11": ("steps_fp32", "float32", sum_of_steps("float32"), ()),
        "HW-17": ("steps_fp64", "float64", sum_of_steps("float64"), ()),
        "HW-18": ("steps_int32", "uint32", after_steps(1, STEPS, 2**32), operands),
        "HW-19": ("steps_special", "float32", 1.0, ()),
    }
    kernels = {name: cuda_kernel(SOURCE, name) for name, *_ in kinds.values()}
    for claim_id, (name, *of_kind) in kinds.items():
        claim(claim_id, STEPS * FULL_BLOCK / cycles_of(kernels[name], gpu, FULL_BLOCK, *of_kind))


def test_schedulers_of_an_sm(cuda_kernel, gpu, claim):
    needs_hopper(gpu)
    mixed, occupy = (cuda_kernel(SOURCE, name) for name in ("steps_mixed", "occupy_places"))
    for profile in mixed.profiles.values():  # more than the units would need a cycle for, if there were more schedulers
        assert profile.opcodes["fp32"] == 4 * UNROLLED
        assert profile.opcodes["integer"] >= 2 * UNROLLED
    bits = np.arange(FULL_BLOCK, dtype=np.uint32)
    for _ in range(STEPS):
        bits = (bits + np.uint32(TERM)) ^ np.uint32(FACTOR)
    expected = bits ^ sum_of_steps("float32", 4 * STEPS).view(np.uint32)
    operands = (np.uint32(TERM), np.uint32(FACTOR))
    cycles = cycles_of(mixed, gpu, FULL_BLOCK, "uint32", expected, operands)
    issued = 6 * STEPS * (FULL_BLOCK // 32) / cycles
    claim("HW-05", issued)

    blocks = gpu.sm_count * gpu.max_threads_per_sm // FULL_BLOCK
    sm, place = (gpu.zeros(blocks * FULL_BLOCK // 32, dtype="int32") for _ in range(2))
    occupy.launch(grid=(blocks,), block=(FULL_BLOCK,), args=(sm, place, LONG_ENOUGH))()
    taken = set(zip(gpu.to_host(sm).tolist(), gpu.to_host(place).tolist(), strict=True))
    on_each = np.bincount([number for number, _ in taken])
    claim("HW-15", int(on_each.max()))
    claim("HW-16", float(on_each.max() / issued))


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
    claim("HW-21", in_fmas["L1"])
    claim("HW-20", in_fmas["L2"])
    claim("HW-12", in_fmas["DRAM"])


def test_what_other_gpus_hold(claim):
    claim.not_comparable("HW-09")


def test_blocks_of_a_cluster_run_together(cuda_kernel, gpu, claim):
    if gpu.available and gpu.compute_capability < (9, 0):
        pytest.skip(f"clusters came with Hopper, this is {gpu.name}")
    kernel = cuda_kernel(SOURCE, "exchange_in_cluster", arch="sm_90")
    given = gpu.random((4, 2, 32), dtype="int32", seed=410)
    out = gpu.zeros(given.shape, dtype="int32")
    kernel.launch(grid=(8,), block=(32,), args=(out, given))()
    claim("HW-10", float((gpu.to_host(out) == gpu.to_host(given)[:, ::-1]).mean()))
