"""Declared bytes and operations against what a chip can do: nothing true is refused, nothing absurd passes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pytest_gpuperf.device.facts import nominal_facts
from pytest_gpuperf.judge.plausibility import implausible
from pytest_gpuperf.model.architectures import ARCHITECTURES

H200 = msgspec.structs.replace(
    nominal_facts("sm_90"), name="NVIDIA H200", l2_bytes=60 << 20, max_sm_clock_mhz=1980, max_memory_clock_mhz=3201,
    memory_bus_bits=6144,
)  # fmt: skip
PEAKS = [
    ("sm_75", 40, 1590, 260e12), ("sm_80", 108, 1410, 2496e12), ("sm_86", 84, 1740, 1197.4e12),
    ("sm_89", 128, 2520, 2642e12), ("sm_90", 132, 1830, 3958e12), ("sm_100", 148, 1965, 18e15),
    ("sm_103", 148, 1920, 20e15), ("sm_110", 20, 1575, 2070e12), ("sm_120", 170, 2407, 3352e12),
    ("sm_121", 48, 2418, 1000e12),
]  # fmt: skip
"""Multiprocessors, boost clock in MHz and highest published rate of a product: T4, A100, A40, RTX 4090, H100 SXM,
B200, B300, Thor, RTX 5090, GB10.  All but T4's are sparse."""


def said(time_ns: float, **declared: Any) -> tuple[str, ...]:
    given = {"bytes": None, "flops": None, "cache": "cold", **declared}
    return implausible(H200, time_ns, **given).said


@pytest.mark.parametrize(("arch", "sms", "mhz", "peak"), PEAKS)
def test_no_published_peak_is_implausible_and_four_times_as_much_is(arch: str, sms: int, mhz: int, peak: float) -> None:
    facts = msgspec.structs.replace(nominal_facts(arch), sm_count=sms, max_sm_clock_mhz=mhz)
    for times, found in ((1, 0), (4, 1)):
        beyond = implausible(facts, 1e6, bytes=None, flops=int(times * peak * 1e-3), cache="warm")
        assert len(beyond.said) == found


def test_every_architecture_has_a_peak() -> None:
    assert all(part.operations_per_clock >= 4096 for part in ARCHITECTURES.values())


def test_the_best_copy_on_record_is_plausible_and_a_third_more_is_not() -> None:
    """1 GiB read in 243.7 us is the fastest of the example suite, 4.4 of 4.9 TB/s."""
    size = 1 << 30
    assert said(243_736.0, bytes=size, array_bytes=size) == ()
    (message,) = said(180_000.0, bytes=size, array_bytes=size)
    assert message == (
        "IMPLAUSIBLE: bytes=1073741824 in 180 us would be 5.97 TB/s, and the memory of NVIDIA H200 do at most 4.92 "
        "TB/s: declare what one run must move, or see whether the kernel does all of its work"
    )


@pytest.mark.parametrize(
    "declared",
    [
        {"cache": "warm", "array_bytes": 1 << 30},
        {"array_bytes": None},  # a callable, whose second kernel may find the first one's results in the L2
        {"array_bytes": 1 << 28},  # declared more than twice: some of it is read again
    ],
)
def test_what_may_come_out_of_a_cache_is_bound_by_the_caches_alone(declared: dict[str, Any]) -> None:
    assert said(100_000.0, bytes=1 << 30, **declared) == ()
    (message,) = said(10_000.0, bytes=1 << 30, **declared)
    assert message == (
        "IMPLAUSIBLE: bytes=1073741824 in 10 us would be 107 TB/s, and the caches of NVIDIA H200 do at most 66.9 TB/s: "
        "declare what one run must move, or see whether the kernel does all of its work"
    )


def test_what_the_l2_holds_may_be_written_later() -> None:
    assert said(3000.0, bytes=60 << 20, array_bytes=60 << 20) == ()


def test_operations_beyond_sparse_tensor_cores_are_named() -> None:
    (message,) = said(1000.0, flops=10**13)
    assert message == (
        "IMPLAUSIBLE: flops=10000000000000 in 1 us would be 10000000 TFLOP/s, and the tensor cores of NVIDIA H200 do "
        "at most 4282 TFLOP/s: declare the operations of one run, or see whether the kernel does all of its work"
    )


def test_where_the_driver_tells_no_clocks_nothing_is_implausible() -> None:
    quiet = msgspec.structs.replace(H200, max_sm_clock_mhz=None, max_memory_clock_mhz=None)
    assert implausible(quiet, 1.0, bytes=10**12, flops=10**15, cache="cold", array_bytes=10**12).said == ()
