"""What the documents say about the hardware, measured by the SM's own clock.

From the GTC talks of 2025 and 2023, and R. Bourgeois' advice for porting kernels; the kernels' file has their titles.
"""

import functools

import numpy as np
import pytest

SOURCE = "kernels/hardware_facts.cu"
STEPS, BLOCK = 4096, 1024
FACTOR, TERM = 1_664_525, 1_013_904_223  # of the generator in "Numerical Recipes"


def cycles_of(kernel, gpu, threads, expected, *operands):
    out = gpu.zeros(threads, expected.dtype)
    begin, end = (gpu.zeros(threads // 32, "int64") for _ in range(2))
    for _ in range(2):  # the second run has the code in the instruction cache
        kernel.launch(grid=(1,), block=(threads,), args=(out, begin, end, STEPS, *operands))()
    np.testing.assert_allclose(gpu.to_host(out), expected, rtol=1e-6, err_msg=kernel.name)
    return float(gpu.to_host(end).max() - gpu.to_host(begin).min())


def after_steps(start, steps, modulus):
    return functools.reduce(lambda x, _: (x * FACTOR + TERM) % modulus, range(steps), start)


def test_lanes_of_an_sm(cuda_kernel, gpu, record_property):
    chains = {
        "steps_fp32": (np.full(STEPS, 1.1, "float32").cumsum()[-1],),
        "steps_fp64": (np.float64(1.1 * STEPS),),
        "steps_int32": (np.uint32(after_steps(1, STEPS, 2**32)), FACTOR, TERM),
        "steps_special": (np.float32(1),),
    }
    for kernel, arguments in [(cuda_kernel(SOURCE, name), arguments) for name, arguments in chains.items()]:
        record_property(f"{kernel.name} per cycle", STEPS * BLOCK / cycles_of(kernel, gpu, BLOCK, *arguments))


def test_schedulers_of_an_sm(cuda_kernel, gpu, record_property):
    mixed, occupy = (cuda_kernel(SOURCE, name) for name in ("steps_mixed", "occupy_places"))
    term, mask, warps = np.uint32(TERM), np.uint32(FACTOR), BLOCK // 32
    bits = functools.reduce(lambda x, _: (x + term) ^ mask, range(STEPS), np.arange(BLOCK, dtype="uint32"))
    expected = bits ^ np.full(4 * STEPS, 1.1, "float32").cumsum()[-1].view("uint32")
    record_property("instructions per cycle", 6 * STEPS * warps / cycles_of(mixed, gpu, BLOCK, expected, term, mask))
    sm, place = (gpu.zeros(gpu.sm_count * gpu.max_threads_per_sm // 32, "int32") for _ in range(2))
    occupy.launch(grid=(32 * sm.size // BLOCK,), block=(BLOCK,), args=(sm, place, 200_000))()
    taken = {*zip(gpu.to_host(sm).tolist(), gpu.to_host(place).tolist(), strict=True)}
    record_property("warps of an SM", int(np.bincount([number for number, _ in taken]).max()))
    for limit in ("warp_size", "max_blocks_per_sm", "max_threads_per_block", "registers_per_sm", "shared_bytes_per_sm"):
        record_property(limit, getattr(gpu, limit))


def test_what_a_load_costs(cuda_kernel, gpu, record_property):
    fma, link, follow = (cuda_kernel(SOURCE, name) for name in ("steps_fma_fp64", "link_lines", "follow_lines"))
    cycles_of_fma = cycles_of(fma, gpu, 32, np.float64(250 - 249 * 0.999**STEPS), 0.999, 0.25)
    for level, count, warm_up in (("L1", 2**6, 2**6), ("L2", 2**16, 2**16), ("DRAM", 2**23, 64)):  # of 128 bytes
        lines, reached, cycles = gpu.empty((count, 16), "uint64"), gpu.zeros(1, "uint32"), gpu.zeros(1, "int64")
        link.launch(grid=(-(-count // 256),), block=(256,), args=(lines, count, FACTOR, TERM))()
        follow.launch(grid=(1,), block=(1,), args=(lines, warm_up, STEPS, reached, cycles))()
        assert int(gpu.to_host(reached)[0]) == after_steps(0, warm_up + STEPS, count)
        record_property(f"FMAs per load from {level}", float(gpu.to_host(cycles)[0]) / cycles_of_fma)


def test_blocks_of_a_cluster_run_together(cuda_kernel, gpu, record_property):
    if gpu.available and gpu.compute_capability < (9, 0):
        pytest.skip("clusters came with Hopper")
    given, out = gpu.random((4, 2, 32), "int32", seed=410), gpu.zeros((4, 2, 32), "int32")
    cuda_kernel(SOURCE, "exchange_in_cluster", arch="sm_90").launch(grid=(8,), block=(32,), args=(out, given))()
    record_property("values that crossed", float((gpu.to_host(out) == gpu.to_host(given)[:, ::-1]).mean()))
