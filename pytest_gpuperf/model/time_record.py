"""Evidence of a workload's time and secondary metrics, as it is measured and as a baseline keeps it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from pytest_gpuperf.model.evidence import Record, StaticRecord
from pytest_gpuperf.model.limits import TimerName

CacheMode = Literal["cold", "warm"]
CALLABLE = "callable"  # the launch of what is no kernel


class Identity(Record, frozen=True):
    """Equal identity = the same work by the same machine code: the code cannot have regressed."""

    code: str
    """``StaticProfile.code_hash`` of the kernel; empty for a callable without a cubin of its own."""
    launch: str
    """``grid=(1024, 1, 1) block=(32, 32, 1) shared=0``"""
    arguments: tuple[str, ...] = ()
    """One entry per argument: ``float32[1024,32,32] align=512``, ``int32=7``."""
    source: str = ""
    """``KernelBinary.source_hash``: not part of what executes, kept to attribute a difference."""
    toolchain: str = ""
    config: str = ""
    """``KernelBinary.config``: as ``source``."""

    def same_execution(self, other: Identity) -> bool:
        """True if both run the same machine code, launched alike on alike arguments."""
        mine, theirs = ((one.code, one.launch, one.arguments) for one in (self, other))
        return bool(self.code) and mine == theirs


class Session(Record, frozen=True):
    """One recording: the machine as it was.  Short and whitelisted, so that diffs stay readable."""

    id: str
    """Unique in a file: ``20261121T101500-9f3a``."""
    date: str
    """UTC, ISO 8601, seconds."""
    gpu: str
    uuid: str
    driver: str
    toolchain: str
    timer: TimerName
    tick_ns: float
    """Step of the timer's clock, as measured."""
    overhead_ns: float
    """What a sample of an empty kernel reads beyond the kernel's own time."""
    sm_clock_mhz: int | None = None
    commit: str = ""
    """Of the tests' repository, as git names it; empty outside of one."""
    dirty: bool = False
    """Whether tracked files differed from that commit, those of the baseline folder aside."""
    midmeans: tuple[float, ...] = ()
    """In the line of a record: of its rounds, in the order they were taken; nanoseconds per launch."""


def mean_time_ns(rounds: Sequence[float]) -> float:
    """Nanoseconds per run: the geometric mean of the rounds; NaN without any."""
    if not rounds:
        return math.nan
    return math.exp(math.fsum(math.log(one) for one in rounds) / len(rounds))


class HostTime(Record, frozen=True):
    """A time of the CPU over that of fixed work of this plugin, interleaved with it."""

    ratios: tuple[float, ...]
    """One for each process that took it: the median of its blocks."""
    time_ns: float
    """What one run took there, nanoseconds; the median of the processes."""
    cpu: str
    """Model of the CPU."""
    made_by: str
    """What else it depends on: Python, the fixed work and the driver."""


class SecondaryMetrics(Record, frozen=True):
    """Figures of one workload; None where it was not asked for."""

    memory_bytes: int | None = None
    """Device memory that one run needs at most: arrays of a launch, and what it allocates."""
    accuracy: float | None = None
    """The error that the test's ``accuracy=`` returned."""
    host: HostTime | None = None
    """From the call of the workload to its return."""


def updated(old: SecondaryMetrics | None, newer: SecondaryMetrics | None) -> SecondaryMetrics | None:
    """The figures of both, the newer one's winning: a recording without a figure keeps the recorded one."""
    if old is None or newer is None:
        return newer or old
    found = {name: value for name, value in msgspec.structs.asdict(newer).items() if value is not None}
    return msgspec.structs.replace(old, **found)


class TimeRecord(Record, frozen=True):
    """Time evidence of one workload on one GPU model: a leaf of the time baseline."""

    identity: Identity
    timer: TimerName
    cache: CacheMode
    rounds: tuple[float, ...] = ()
    """Of each its midmean, or the core of coarse readings (``timing.samples.centre``); ns per launch."""
    session: Session | None = None
    """In a baseline that of the rounds; of a run none."""
    kernel: str = ""
    symbol: str = ""
    cubin: str = ""
    """SHA-256 of the baseline's cubin in ``baselines/cubins``; empty for a callable."""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    dynamic_shared_bytes: int = 0
    bytes: int | None = None
    """Bytes that one run must move, as declared by the test."""
    flops: int | None = None
    """Floating-point operations of one run, as declared by the test."""
    counters: dict[str, float] = msgspec.field(default_factory=dict)
    """Of one run, by the metrics' names on GH100; medians where they were taken several times."""
    counter_ranges: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Least and most of the counters that were not the same in every take of equal code."""
    secondary: SecondaryMetrics | None = None
    """Its secondary metrics; None where the test asked for none."""
    kernel_breakdown: dict[str, float] = msgspec.field(default_factory=dict)
    """Of a callable: mean nanoseconds per run of each of its kernels, by symbol."""


class WorkloadRecords(NamedTuple):
    """The records of one workload, for every target."""

    static: dict[tuple[str, str], StaticRecord]
    """By architecture and toolchain."""
    times: dict[str, TimeRecord]
    """By GPU model."""

    @property
    def kernel(self) -> str:
        """What it launches, as the user names it; empty for a callable."""
        names = [one.kernel for one in self.static.values()] + [one.kernel for one in self.times.values()]
        return next(filter(None, names), "")
