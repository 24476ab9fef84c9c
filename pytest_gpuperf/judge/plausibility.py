"""Figures beyond what a chip can do: IMPLAUSIBLE, not a result.  Pure.

Either the test declares more than a run does, or the kernel did less than its work.  Limits are upper bounds, for
nothing true may be refused: an SM moves 128 bytes in a clock through its L1 (CUDA C++ Programming Guide, "Compute
Capability 7.x" and later; doubled here, for broadcasts), its tensor cores do what ``model.architectures`` says, and
memory moves twice its bus width in a clock.
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_gpuperf.formatting import duration, rate
from pytest_gpuperf.model.architectures import ARCHITECTURES
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import CacheMode

MARGIN = 1.1
"""On all limits: clocks may be raised a little beyond what the driver calls their maximum."""
BYTES_PER_SM_CLOCK = 2 * 128
READ_AND_WRITTEN = 2
"""Each array is read once and written once at most, or declared bytes count some of them again, out of a cache."""


class Implausible(NamedTuple):
    """What is wrong with the figures that follow from ``bytes=`` and ``flops=``; empty where nothing is."""

    bytes: str = ""
    flops: str = ""

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(text for text in self if text)


def implausible(
    facts: DeviceFacts,
    time_ns: float,
    *,
    bytes: int | None,
    flops: int | None,
    cache: CacheMode,
    array_bytes: int | None = None,
) -> Implausible:
    """Hold what a test declares of one run against what the GPU can do in ``time_ns`` nanoseconds.

    ``array_bytes`` is the size of all arrays of a launch; None for a callable and wherever it is not known: then data
    may come out of the L2 again and again, and memory is no limit.
    """
    return Implausible(
        bytes=_of_bytes(facts, time_ns, bytes, cache, array_bytes) if bytes else "",
        flops=_of_flops(facts, time_ns, flops) if flops else "",
    )


def _of_bytes(facts: DeviceFacts, time_ns: float, bytes: int, cache: CacheMode, array_bytes: int | None) -> str:
    declared = f"bytes={bytes} in {duration(time_ns)}"
    remedy = "declare what one run must move, or see whether the kernel does all of its work"
    if facts.max_sm_clock_mhz:
        most = BYTES_PER_SM_CLOCK * facts.sm_count * facts.max_sm_clock_mhz * 1e6
        if bytes / time_ns * 1e9 > MARGIN * most:
            return _beyond(declared, bytes / time_ns * 1e9, most, "B/s", f"the caches of {facts.name}", remedy)
    once = array_bytes is not None and bytes <= READ_AND_WRITTEN * array_bytes
    if cache == "cold" and once and facts.max_memory_clock_mhz and facts.memory_bus_bits:
        most = 2 * facts.memory_bus_bits / 8 * facts.max_memory_clock_mhz * 1e6
        if (bytes - facts.l2_bytes) / time_ns * 1e9 > MARGIN * most:  # so much may wait in the L2 to be written
            return _beyond(declared, bytes / time_ns * 1e9, most, "B/s", f"the memory of {facts.name}", remedy)
    return ""


def _of_flops(facts: DeviceFacts, time_ns: float, flops: int) -> str:
    part = ARCHITECTURES.get(facts.arch)
    if part is None or not facts.max_sm_clock_mhz:
        return ""
    most = part.operations_per_clock * facts.sm_count * facts.max_sm_clock_mhz * 1e6
    if flops / time_ns * 1e9 <= MARGIN * most:
        return ""
    declared = f"flops={flops} in {duration(time_ns)}"
    remedy = "declare the operations of one run, or see whether the kernel does all of its work"
    return _beyond(declared, flops / time_ns * 1e9, most, "FLOP/s", f"the tensor cores of {facts.name}", remedy)


def _beyond(declared: str, per_second: float, most: float, unit: str, what: str, remedy: str) -> str:
    return (
        f"IMPLAUSIBLE: {declared} would be {rate(per_second, unit)}, and {what} do at most {rate(most, unit)}: {remedy}"
    )
