"""Kernels of chosen lengths, and versions of them that are slower by a chosen share of their time.

How a kernel's time grows with its count is measured first, on the timer that will judge it: a straight line of a fixed
cost (launch, first instructions) and a cost per count.  The share by which a version is slower follows from the line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.selftest.kernels import FAMILIES, LOOP, Family, Probe, capacity_of, compile_probes, launch_of
from pytest_gpuperf.selftest.sass_loop import UnexpectedCode, loop_codes
from pytest_gpuperf.timing.rounds import Workload, valid_samples, warm_up
from pytest_gpuperf.timing.sample_stats import midmean

ROUGH_COUNTS = {
    "loop": (2000, 100_000),
    "copy": (1 << 18, 1 << 22),
    "scatter": (1 << 18, 1 << 21),
    "softmax": (1 << 11, 1 << 14),
}
LEAST_COUNT = {"loop": 40, "copy": 4096, "scatter": 4096, "softmax": 64}
SPAN = (1.0, 1.03, 1.06)
"""Counts of a copy, in shares of its baseline's, between which its time is taken to be a straight line."""
SAMPLES = 30
REPEATS = 3
ATTEMPTS = 3


class Subject(Record, frozen=True):
    """One baseline kernel and its slower versions."""

    name: str
    """``loop 10 us``"""
    family: str
    count: int
    capacity: int
    """Counts that its buffers and grid reach."""
    duration_ns: float
    """Duration of the baseline, as measured."""
    counts: dict[str, int]
    """Count of the version that is slower by so many percent: ``{"1": 10180}``."""
    known: dict[str, float]
    """True ratio of that version to the baseline."""
    known_se: dict[str, float] = msgspec.field(default_factory=dict)
    """Standard error of that, where it was found by pairing; relative."""

    def baseline(self, surroundings: int = 0) -> Probe:
        return Probe(FAMILIES[self.family], self.count, surroundings)

    def candidate(self, percent: float, surroundings: int = 1) -> Probe:
        """The version that is slower by ``percent``; at 0 the baseline among other functions."""
        count = self.counts[effect_key(percent)] if percent else self.count
        return Probe(FAMILIES[self.family], count, surroundings)

    def ratio(self, percent: float) -> float:
        """The true ratio: 1 at ``percent`` 0."""
        return self.known[effect_key(percent)] if percent else 1.0

    def ratio_se(self, percent: float) -> float:
        """Standard error of the true ratio; 0 where it follows from counts of instructions."""
        return self.known_se.get(effect_key(percent), 0.0)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A subject to be made: of a length in nanoseconds, or of a count."""

    name: str
    family: Family
    duration_ns: float | None = None
    count: int | None = None
    slower: bool = True
    """True if versions of it that are slower are wanted, too."""


@dataclasses.dataclass(frozen=True)
class TimeByCount:
    """Time of a family's kernels by their count."""

    fixed_ns: float
    per_count_ns: float

    def count_for(self, duration_ns: float) -> int:
        return round((duration_ns - self.fixed_ns) / self.per_count_ns)


class NotLinear(Exception):
    """Kernels with more work did not take longer: their slowdown is not known, and nothing can be tested."""


def effect_key(percent: float) -> str:
    """``1``, ``0.25``"""
    return f"{percent:g}"


def fit(times_ns: Mapping[int, float]) -> TimeByCount:
    """The straight line through times by count.  Raises ``NotLinear`` if it does not rise."""
    counts = np.array(list(times_ns), dtype=np.float64)
    slope, fixed = np.polyfit(counts, np.array(list(times_ns.values())), 1)
    if not slope > 0:
        listed = ", ".join(f"{count}: {time:.0f} ns" for count, time in times_ns.items())
        raise NotLinear(f"more work takes no more time ({listed}): is something else using the GPU?")
    return TimeByCount(float(fixed), float(slope))


def times_of(
    device: Device, timer: Timer, family: Family, capacity: int, binaries: Mapping[int, KernelBinary]
) -> dict[int, float]:
    """Midmean times in nanoseconds by count, taken in turns, each with a cold L2."""
    launches = {count: launch_of(device, binary, family, capacity) for count, binary in binaries.items()}
    for launch in launches.values():
        warm_up(timer, Workload(launch), bound_s=0.05)
    slots = [Slot(launch, SAMPLES) for launch in launches.values()]
    taken = [timer.measure(slots, "cold") for _ in range(REPEATS)]
    return {
        count: midmean(valid_samples([time for times in taken for time in times[place]]))
        for place, count in enumerate(launches)
    }


def make_subjects(
    device: Device, timer: Timer, wanted: Sequence[Wanted], percents: Sequence[float], cache: CompileCache | None = None
) -> list[Subject]:
    """Subjects of the wanted lengths, each with versions slower by ``percents`` or up to one count more, if wanted.

    The caller holds the GPU's lock.  Raises ``NotLinear``, ``UnexpectedCode``, and what compiling and timing raise.
    """
    families = dict.fromkeys(one.family for one in wanted)
    rough = {family: _rough_line(device, timer, family, cache) for family in families}
    made = []
    for one in wanted:
        count = one.count or rough[one.family].count_for(one.duration_ns or 0.0)
        count = max(count, LEAST_COUNT[one.family.name])
        times, line = _local_line(device, timer, one, count, rough[one.family], cache)
        made.append(_subject(one, count, times, line, percents if one.slower else ()))
    return made


def _rough_line(device: Device, timer: Timer, family: Family, cache: CompileCache | None) -> TimeByCount:
    counts = ROUGH_COUNTS[family.name]
    binaries = _compiled(device, family, counts, cache)
    return _rising(lambda: times_of(device, timer, family, capacity_of(counts[-1]), binaries))[1]


def _local_line(
    device: Device, timer: Timer, one: Wanted, count: int, rough: TimeByCount, cache: CompileCache | None
) -> tuple[float, TimeByCount]:
    """The baseline's own time, and the line of its slower versions; that of long loops holds for short ones as well."""
    of_its_own = one.slower and one.family is not LOOP
    counts = [round(count * share) for share in SPAN] if of_its_own else [count]
    binaries = _compiled(device, one.family, counts, cache)

    def measured() -> dict[int, float]:
        return times_of(device, timer, one.family, capacity_of(count), binaries)

    if not of_its_own:
        return measured()[count], rough
    times, line = _rising(measured)
    return times[count], line


def _rising(measured: Callable[[], dict[int, float]]) -> tuple[dict[int, float], TimeByCount]:
    """Times by count and the rising line through them, in up to three attempts.  Raises ``NotLinear``."""
    for _ in range(ATTEMPTS - 1):
        times = measured()
        with contextlib.suppress(NotLinear):
            return times, fit(times)
    times = measured()
    return times, fit(times)


def _subject(one: Wanted, count: int, duration_ns: float, line: TimeByCount, percents: Sequence[float]) -> Subject:
    counts, known = {}, {}
    for percent in percents:
        added = math.ceil(percent / 100 * duration_ns / line.per_count_ns)  # at least by so much, by a count at most
        counts[effect_key(percent)] = count + added
        known[effect_key(percent)] = 1 + added * line.per_count_ns / duration_ns
    return Subject(
        name=one.name, family=one.family.name, count=count, capacity=capacity_of(count), duration_ns=duration_ns,
        counts=counts, known=known,
    )  # fmt: skip


def _compiled(
    device: Device, family: Family, counts: Sequence[int], cache: CompileCache | None
) -> dict[int, KernelBinary]:
    binaries = compile_probes([Probe(family, count) for count in counts], device.facts.arch, cache)
    if family is LOOP:
        require_iterations(binaries)
    return {probe.count: binary for probe, binary in binaries.items()}


def require_iterations(binaries: Mapping[Probe, KernelBinary]) -> None:
    """Raise ``UnexpectedCode`` unless the machine code of each loop loops as often as its source says."""
    for probe, found in zip(binaries, loop_codes(list(binaries.values())), strict=True):
        if found.iterations != probe.count:
            raise UnexpectedCode(f"{probe.name}: {found.iterations} iterations in its machine code, not {probe.count}")
