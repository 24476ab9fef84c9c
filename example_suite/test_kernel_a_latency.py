"""A chain of dependent additions: latency, hidden by more warps or by independent work.

From the GTC 2025 talk "CUDA Techniques to Maximize Compute and Instruction Throughput" and the GTC 2023 talk "What the
profiler is telling you: optimizing your CUDA application".
"""

from typing import NamedTuple

import counters
import numpy as np
import ptx_counts
import pytest
from rules_of_thumb import on_the_right_sides

SOURCE = "kernels/kernel_a_latency.cu"
SCHEDULERS = 4
"""Of an SM."""


class Variant(NamedTuple):
    """One launch of one kernel."""

    kernel: str
    dtype: str
    threads: int
    """Of a block."""
    blocks: int = 1
    blocks_per_sm: int = 0
    """In place of ``blocks``, to fill the GPU."""
    starts: tuple[float, ...] = (0.0,)
    """What each of a thread's sums starts at."""
    count: int = 100_000
    """Additions to each sum when it is measured."""


VARIANTS = {
    "f64_1warp_rolled": Variant("chain_f64_rolled", "float64", 32),
    "f64_1warp": Variant("chain_f64", "float64", 32),
    "f32_1warp": Variant("chain_f32", "float32", 32),
    "f32_3warps_slide": Variant("chain_f32", "float32", 32, blocks=3),
    "f32_3warps": Variant("chain_f32", "float32", 3 * SCHEDULERS * 32),
    "f32_ilp2": Variant("chain_f32x2", "float32", 32, starts=(0.0, 1.0)),
    "f64_saturated": Variant("chain_f64", "float64", 1024, blocks_per_sm=2),
    "f32_saturated": Variant("chain_f32", "float32", 1024, blocks_per_sm=2),
    "f32_ilp2_saturated": Variant("chain_f32x2", "float32", 1024, blocks_per_sm=2, starts=(0.0, 1.0)),
    "f64_16_waves": Variant("chain_f64", "float64", 64, blocks_per_sm=16 * 32, count=100_000 // 16),
}
ADDITIONS = {"chain_f64_rolled": 5, "chain_f64": 101, "chain_f32": 101, "chain_f32x2": 202}
"""In PTX: an unrolled loop and the loop for the rest."""


def sums(variant, count):
    """The sums of one thread, added up one by one in the variant's own precision."""
    terms = np.full((count + 1, len(variant.starts)), 3.14, dtype=variant.dtype)
    terms[0] = variant.starts
    return np.add.accumulate(terms)[-1]


def output_of(variant, gpu):
    blocks = variant.blocks_per_sm * gpu.sm_count or variant.blocks
    return gpu.zeros((blocks * variant.threads, len(variant.starts)), dtype=variant.dtype)


def launch_into(kernel, variant, out, count):
    return kernel.launch(grid=(len(out) // variant.threads,), block=(variant.threads,), args=(out, count))


def assert_every_thread_has(gpu, out, expected):
    np.testing.assert_array_equal(gpu.to_host(out), np.broadcast_to(expected, out.shape))


def test_reference_is_the_documents():
    assert float(sums(VARIANTS["f64_1warp"], 1000)[0]) == 3139.9999999999845
    assert float(sums(VARIANTS["f32_1warp"], 1000)[0]) == pytest.approx(3139.971, abs=1e-4)


@pytest.mark.parametrize("name", VARIANTS)
def test_sums_are_exact(cuda_kernel, gpu, name):
    variant = VARIANTS[name]
    kernel = cuda_kernel(SOURCE, variant.kernel)
    for count in (0, 7, 1000):
        out = output_of(variant, gpu)
        launch_into(kernel, variant, out, count)()
        assert_every_thread_has(gpu, out, sums(variant, count))


def test_cycles_of_an_addition(cuda_kernel, gpu, claim):
    kernel = cuda_kernel(SOURCE, "chain_f64_cycles")
    if gpu.compute_capability != (9, 0):
        pytest.skip(f"the cycles expected are Hopper's, this is {gpu.name}")
    count = 10_000

    def cycles_with(warps):
        """SM cycles from the first warp's start to the last one's end."""
        out = gpu.zeros(32 * warps, dtype="float64")
        begin, end = gpu.zeros(warps, dtype="int64"), gpu.zeros(warps, dtype="int64")
        launch = kernel.launch(grid=(1,), block=(32 * warps,), args=(out, begin, end, count))
        for _ in range(2):  # the second run has the code in the instruction cache
            launch()
        assert_every_thread_has(gpu, out, sums(VARIANTS["f64_1warp"], count)[0])
        return float(gpu.to_host(end).max() - gpu.to_host(begin).min())

    latency = cycles_with(warps=1) / count
    interval = cycles_with(warps=32) / (count * 32 / SCHEDULERS)
    claim("KA-09", latency)
    claim("KA-16", interval)


@pytest.mark.gpuperf(budget_s=0.5)
def test_chain_of_additions(cuda_kernel, gpu, gpuperf, claim):
    """Latency is the limit of a lone warp alone: once other warps hide it, independent additions gain nothing more."""
    kernels = {name: cuda_kernel(SOURCE, name) for name in ADDITIONS}
    for name, kernel in kernels.items():
        for arch, profile in kernel.profiles.items():
            counts = ptx_counts.instructions(kernel, arch)
            floats = ("f32", "f64")
            found = sum(n for opcode, n in counts.items() if opcode.startswith("add.") and opcode.endswith(floats))
            assert found == ADDITIONS[name]
            assert profile.registers <= 16
            assert profile.stack_bytes == 0

    def measure(name, variant):
        out = output_of(variant, gpu)
        launch = launch_into(kernels[variant.kernel], variant, out, variant.count)
        return gpuperf(
            launch,
            name=name,
            flops=out.size * variant.count,
            cache="warm",
            check=lambda: assert_every_thread_has(gpu, out, sums(variant, variant.count)),
        )

    runs = {name: measure(name, variant) for name, variant in VARIANTS.items()}
    assert_what_counters_say(runs, claim)
    time = {name: run.time_ns for name, run in runs.items()}

    assert time["f32_ilp2"] == pytest.approx(time["f32_1warp"], rel=0.05)  # twice the work
    claim("KA-13", time["f64_saturated"] / time["f64_1warp"])
    assert time["f32_3warps"] <= 1.1 * time["f32_1warp"]  # three times the work, in the time of a lone warp
    assert time["f32_3warps_slide"] <= 1.1 * time["f32_1warp"]
    assert time["f32_1warp"] <= 0.7 * time["f64_1warp"]
    # With the latency hidden by 16 warps there is nothing left to gain: twice the additions take twice the time.
    assert time["f32_ilp2_saturated"] == pytest.approx(2 * time["f32_saturated"], rel=0.05)


def assert_what_counters_say(runs, claim):
    lone, saturated, single = runs["f64_1warp"], runs["f64_saturated"], runs["f32_1warp"]
    waves = runs["f64_16_waves"]

    def faster_than_single(name):
        """In instructions per cycle of a scheduler that has any."""
        return counters.issue_rate(runs[name]) / counters.issue_rate(single)

    def share_of_wait():
        """Of all that a lone warp waits for."""
        return counters.stall(lone, "wait") / (counters.cycles_per_instruction(lone) - counters.stall(lone, "selected"))

    def instructions_of_a_full_pipe():
        """Per cycle of a scheduler."""
        return counters.issue_rate(saturated) / (counters.fp64_busy(saturated) / 100)

    def throttle():
        """Cycles against those of the next longest stall."""
        name = "math_pipe_throttle"
        return counters.stall(saturated, name) / counters.longest_stall(saturated, name)

    claim("KA-01", lambda: counters.active_warps(lone))
    claim("KA-02", lambda: counters.eligible_warps(lone))
    claim("KA-03", lambda: counters.issue_rate(lone))
    claim("KA-04", lambda: 1 - counters.eligible_warps(lone))
    claim("KA-05", share_of_wait)
    claim("KA-06", lambda: counters.active_warps(waves))
    claim("KA-07", lambda: counters.eligible_warps(waves), because=[instructions_of_a_full_pipe])
    claim("KA-15", lambda: counters.issue_rate(saturated), because=[instructions_of_a_full_pipe])
    claim(
        "KA-08",
        lambda: counters.issue_rate(saturated) / counters.issue_rate(lone),
        because=[instructions_of_a_full_pipe],
    )
    claim("KA-10", lambda: faster_than_single("f32_3warps"))
    claim("KA-11", lambda: faster_than_single("f32_ilp2"))
    claim("KA-12", lambda: faster_than_single("f32_3warps_slide"))
    claim("KA-14", lambda: counters.fp64_busy(saturated))
    claim("KA-17", throttle)
    assert_rules_of_thumb(lone, runs["f32_saturated"], claim)


def assert_rules_of_thumb(lone, busy, claim):
    """Of a lone warp and of SMs full of them, doing the same."""
    claim(
        "THR-01",
        lambda: on_the_right_sides(
            counters.sm_throughput(busy), counters.sm_throughput(lone), good_beyond=80, poor_beyond=50
        ),
    )
    claim(
        "THR-07",
        lambda: on_the_right_sides(
            counters.instructions_per_cycle(busy), counters.instructions_per_cycle(lone), good_beyond=1, poor_beyond=0.5
        ),
    )
    peaks = (counters.sm_throughput, counters.memory_throughput)
    claim(
        "THR-08",
        lambda: on_the_right_sides(
            *(max(peak(run) for peak in peaks) for run in (busy, lone)), good_beyond=80, poor_beyond=60
        ),
    )
    claim("THR-09", lambda: max(peak(busy) for peak in peaks))
