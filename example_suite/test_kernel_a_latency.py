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


VARIANTS = {
    "f64_1warp_rolled": Variant("chain_f64_rolled", "float64", 32),
    "f64_1warp": Variant("chain_f64", "float64", 32),
    "f32_1warp": Variant("chain_f32", "float32", 32),
    "f32_3warps_slide": Variant("chain_f32", "float32", 32, blocks=3),
    "f32_3warps": Variant("chain_f32", "float32", 3 * SCHEDULERS * 32),
    "f32_ilp2": Variant("chain_f32x2", "float32", 32, starts=(0.0, 1.0)),
    "f64_saturated": Variant("chain_f64", "float64", 1024, blocks_per_sm=2),
    "f32_saturated": Variant("chain_f32", "float32", 1024, blocks_per_sm=2),
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
    assert interval == pytest.approx(2, abs=0.2)
    claim("KA-09", latency, equals=8, tol=0.6)


@pytest.mark.gpuperf(budget_s=0.5)
def test_chain_of_additions(cuda_kernel, gpu, gpuperf, claim):
    kernels = {name: cuda_kernel(SOURCE, name) for name in ADDITIONS}
    for name, kernel in kernels.items():
        for arch, profile in kernel.profiles.items():
            counts = ptx_counts.instructions(kernel, arch)
            floats = ("f32", "f64")
            found = sum(n for opcode, n in counts.items() if opcode.startswith("add.") and opcode.endswith(floats))
            assert found == ADDITIONS[name]
            assert profile.registers <= 16
            assert profile.stack_bytes == 0

    count = 100_000

    def measure(name, variant):
        out = output_of(variant, gpu)
        launch = launch_into(kernels[variant.kernel], variant, out, count)
        return gpuperf(
            launch,
            name=name,
            flops=out.size * count,
            cache="warm",
            check=lambda: assert_every_thread_has(gpu, out, sums(variant, count)),
        )

    runs = {name: measure(name, variant) for name, variant in VARIANTS.items()}
    assert_what_counters_say(runs, claim)
    time = {name: run.time_ns for name, run in runs.items()}

    assert time["f32_ilp2"] == pytest.approx(time["f32_1warp"], rel=0.05)  # twice the work
    claim("KA-13", time["f64_saturated"] / time["f64_1warp"], equals=4, tol=0.4)
    assert time["f32_3warps"] <= 1.1 * time["f32_1warp"]  # three times the work, in the time of a lone warp
    assert time["f32_3warps_slide"] <= 1.1 * time["f32_1warp"]
    assert time["f32_1warp"] <= 0.7 * time["f64_1warp"]


def assert_what_counters_say(runs, claim):
    lone, saturated, single = runs["f64_1warp"], runs["f64_saturated"], runs["f32_1warp"]

    def faster_than_single(name):
        """In instructions per cycle of a scheduler that has any."""
        return counters.issue_rate(runs[name]) / counters.issue_rate(single)

    def fp64_pipe():
        assert counters.stall(saturated, "math_pipe_throttle") >= counters.longest_stall(saturated)
        return counters.fp64_busy(saturated)

    claim.counter("KA-01", lambda: counters.active_warps(lone), between=(0.98, 1.02))
    claim.counter("KA-02", lambda: counters.eligible_warps(lone), equals=1.03 / 8, tol=0.02)
    claim.counter("KA-03", lambda: counters.eligible_warps(lone) - counters.issue_rate(lone), equals=0, tol=0.01)
    claim.counter("KA-04", lambda: 1 - counters.issue_rate(lone), equals=7 / 8, tol=0.02)
    claim.counter("KA-05", lambda: counters.stall(lone, "wait") / counters.longest_stall(lone, "wait"), at_least=1)
    claim.counter_refuted(
        "KA-06",
        lambda: counters.active_warps(saturated),
        holds=lambda warps: warps >= 15.5,
        reason="all 16 start together and have the same to do, but four fill the FP64 pipe (a latency of 8 cycles, an "
        "instruction every 2): schedulers favour some, and the average warp is gone after 74 % of the time",
    )
    claim.counter(
        "KA-07", lambda: counters.issue_rate(saturated), between=(0.50, 0.53)
    )  # 16 FP64 lanes, not the talk's 8
    claim.counter("KA-08", lambda: counters.issue_rate(saturated) / counters.issue_rate(lone), equals=4, tol=0.4)
    claim.counter("KA-10", lambda: faster_than_single("f32_3warps"), equals=3, tol=0.15)
    claim.counter("KA-11", lambda: faster_than_single("f32_ilp2"), equals=2, tol=0.1)
    claim.counter("KA-12", lambda: faster_than_single("f32_3warps_slide"), equals=1, tol=0.05)
    claim.counter("KA-14", fp64_pipe, at_least=90)

    def instructions_of_a_full_fp64_pipe():
        assert counters.fp64_busy(saturated) >= 87.2
        return counters.instructions_per_cycle(saturated)

    claim.counter_refuted(
        "CFD-05",
        instructions_of_a_full_fp64_pipe,
        holds=lambda per_cycle: per_cycle <= 0.5,
        reason="with a pipe as full as TRUST's kernel had it an SM issues six times as often: an H200 has an FP64 unit "
        "for every two of FP32, an RTX 6000 Ada one for 64",
    )
    # The article's other GPU; with as few FP64 units as its own, the warps would wait for the short scoreboard.
    waiting = ("wait", "math_pipe_throttle")
    claim.counter(
        "CFD-06",
        lambda: (
            counters.stall(saturated, "short_scoreboard") / max(counters.stall(saturated, each) for each in waiting)
        ),
        at_most=1,
    )
    assert_rules_of_thumb(lone, runs["f32_saturated"], claim)


def assert_rules_of_thumb(lone, busy, claim):
    """Of a lone warp and of SMs full of them, doing the same."""
    claim.counter(
        "THR-01",
        lambda: on_the_right_sides(
            counters.sm_throughput(busy), counters.sm_throughput(lone), good_beyond=80, poor_beyond=50
        ),
        at_least=0,
    )
    claim.counter(
        "THR-07",
        lambda: on_the_right_sides(
            counters.instructions_per_cycle(busy), counters.instructions_per_cycle(lone), good_beyond=1, poor_beyond=0.5
        ),
        at_least=0,
    )
    peaks = (counters.sm_throughput, counters.memory_throughput)
    claim.counter(
        "THR-08",
        lambda: on_the_right_sides(
            *(max(peak(run) for peak in peaks) for run in (busy, lone)), good_beyond=80, poor_beyond=60
        ),
        at_least=0,
    )
    claim.counter("THR-09", lambda: max(peak(busy) for peak in peaks), at_least=80)
