"""What holds a kernel back, by counters or by what the test declares."""

from __future__ import annotations

import pytest

from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.advise.limiting_resource import COMPUTE, MEMORY, state_of

PEAKS = {"copy_bandwidth": 4e12, "fma_throughput": 60e12}


def counted(compute: float, memory: float, lanes: float = 32.0) -> Side:
    counters = {COMPUTE: compute, MEMORY: memory, "smsp__inst_executed.sum": 1e6,
                "smsp__thread_inst_executed.sum": lanes * 1e6}  # fmt: skip
    return Side(arch="sm_90", counters=counters)


@pytest.mark.parametrize(
    ("compute", "memory", "lanes", "bound"),
    [
        (85, 30, 32, "compute"),
        (85, 30, 23, "divergence"),
        (85, 30, 24, "compute"),
        (30, 92, 32, "memory"),
        (30, 92, 8, "memory"),
        (59, 59, 32, "latency"),
        (60, 40, 32, "compute"),
        (85, 82, 32, "compute and memory"),
        (70, 65, 32, "compute and memory"),
        (79, 61, 32, "compute"),
        (2, 3, 32, "latency"),
    ],
)
def test_the_pair_of_throughputs_tells_the_state(compute: float, memory: float, lanes: float, bound: str) -> None:
    found = state_of(counted(compute, memory, lanes), {})
    assert found is not None
    assert found.bound == bound


def test_the_roofline_is_the_dearer_of_moving_and_computing() -> None:
    counters = counted(85, 30).counters
    timed = Side(arch="sm_90", time_ns=1e6, bytes=2_000_000_000, flops=30_000_000_000, counters=counters)
    for peaks, roofline in ((PEAKS, 0.5), ({"fma_throughput": 30e12}, 1.0), ({}, None)):
        found = state_of(timed, peaks)
        assert found is not None
        assert found.roofline == pytest.approx(roofline)


def test_declared_bytes_and_operations_tell_without_counters() -> None:
    found = state_of(Side(arch="sm_90", time_ns=1e6, bytes=3_600_000_000), PEAKS)
    assert found is not None
    assert (found.bound, found.roofline) == ("memory", pytest.approx(0.9))
    assert found.why == "90% of the measured copy bandwidth"
    slow = state_of(Side(arch="sm_90", time_ns=1e6, bytes=400_000_000), PEAKS)
    assert slow is not None
    assert slow.bound == "latency"
    assert "--gpuperf-ncu" in slow.missing


@pytest.mark.parametrize(
    ("side", "peaks"),
    [
        (Side(arch="sm_90", bytes=10), PEAKS),
        (Side(arch="sm_90", time_ns=1e6), PEAKS),
        (Side(arch="sm_90", time_ns=1e6, bytes=10), {}),
        (Side(arch="sm_90", time_ns=1e6, bytes=10), {"fma_throughput": 1e12}),
    ],
)
def test_without_counters_a_state_takes_a_roofline(side: Side, peaks: dict[str, float]) -> None:
    assert state_of(side, peaks) is None
