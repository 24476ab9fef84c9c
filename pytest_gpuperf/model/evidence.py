"""The nouns: what was found out about a workload, as typed, frozen records that convert to JSON with ``msgspec``."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.limits import TimerName

CacheMode = Literal["cold", "warm"]


class Key(Record, frozen=True, order=True):
    """Names one workload of one test.

    ``module`` is the test file relative to pytest's root, with forward slashes
    (``example_suite/test_transpose.py``); ``test`` is the rest of the node id
    (``TestPadded::test_copy[32]``); ``workload`` is unique within the test.
    """

    module: str
    test: str
    workload: str

    @property
    def node_id(self) -> str:
        return f"{self.module}::{self.test}"

    def __str__(self) -> str:
        return f"{self.node_id} [{self.workload}]"


class Parameter(Record, frozen=True):
    """One kernel parameter as the cubin lays it out."""

    offset: int
    """Bytes from the start of the parameter block."""
    size: int
    """Bytes; a pointer is 8."""
    type: str | None = None
    """C++ type, where mangled name or compiler tell it; of ``extern "C"`` what PTX says (``pointer``); else None."""
    name: str = ""
    """What the source calls it; empty where the compiler does not tell."""


class Figures(Record, frozen=True):
    """What the machine code of one kernel on one architecture says about itself in numbers.  Exact."""

    registers: int
    """32-bit registers per thread."""
    stack_bytes: int
    """Stack frame per thread, bytes; includes spilled registers."""
    spill_store_bytes: int | None
    """Bytes stored per thread by register spills (ptxas); None where machine code alone does not tell."""
    spill_load_bytes: int | None
    """Bytes loaded per thread by register spills (ptxas); None as above."""
    shared_bytes: int
    """Static shared memory per block as declared, bytes (without the 1 KB the driver reserves)."""
    constant_bytes: int
    """Bytes in the kernel's own constant banks and parameters."""
    barriers: int
    """Named barriers used by a block."""
    code_bytes: int
    """Size of the kernel's text section, bytes, with its padding."""
    instructions: int
    """SASS instructions, without the NOP padding at the end."""
    opcodes: dict[str, int]
    """SASS instructions by class (``global_load``, ``fp32``, ``tensor``, ...); zero classes are left out."""


class StaticProfile(Figures, frozen=True):
    """All that the machine code of one kernel on one architecture says about itself."""

    code_hash: str
    """SHA-256 of everything in the cubin that execution depends on; names and neighbours are not in it."""

    @property
    def spill_bytes(self) -> int | None:
        """Bytes stored and loaded per thread by register spills; None where they are not known."""
        stores, loads = self.spill_store_bytes, self.spill_load_bytes
        return None if stores is None or loads is None else stores + loads


class Occupancy(Record, frozen=True):
    """Theoretical occupancy of one launch on one architecture."""

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    """Resident warps over the architecture's maximum, 0 to 1."""
    limiter: str
    """What limits it: ``registers``, ``shared memory``, ``warps`` or ``blocks``; ``launch`` if nothing fits."""


class StaticRecord(Record, frozen=True):
    """Static evidence of one workload for one architecture and toolchain: a leaf of the static baseline."""

    kernel: str
    """The kernel's name as the user gave it (with template arguments)."""
    source_hash: str
    """SHA-256 of source, headers and options: tells a code change from a compiler change."""
    profile: StaticProfile
    block: tuple[int, int, int] | None = None
    """None for a kernel that was compiled but not launched by the test."""
    dynamic_shared_bytes: int = 0
    occupancy: Occupancy | None = None
    grid: tuple[int, int, int] | None = None
    """Of the launch: no evidence of the code, but what an estimate of equal work needs; None where it is not known."""
    symbol: str = ""
    """As the cubin calls the kernel; empty where that is its name."""
    cubin: str = ""
    """SHA-256 of the cubin that it lies in; empty where that was not kept."""
    config: str = ""
    """``KernelBinary.config``."""


class KernelBinary(Record, frozen=True):
    """One compiled kernel: its cubin and what was read from it.  Made by ``compile``, loaded by ``device``."""

    name: str
    """As the user gave it."""
    symbol: str
    """As the cubin calls it (mangled for C++ kernels)."""
    arch: str
    """``sm_90``"""
    toolchain: str
    """``nvrtc 13.0.88``"""
    source_hash: str
    """Empty for machine code whose source is not at hand."""
    cubin: bytes
    profile: StaticProfile
    parameters: tuple[Parameter, ...]
    max_threads_per_block: int | None = None
    """From ``__launch_bounds__``; None without."""
    required_block: tuple[int, int, int] | None = None
    """The only block that it may be launched with (``__block_size__``, ``.reqntid``); None if any may be."""
    config: str = ""
    """What an autotuner chose to compile: ``BLOCK=1024, num_warps=4, num_stages=3``; empty where none did."""

    @property
    def cubin_hash(self) -> str:
        """SHA-256 of the cubin."""
        return hashlib.sha256(self.cubin).hexdigest()

    def record(
        self, *, block: tuple[int, int, int] | None = None, dynamic_shared_bytes: int = 0,
        occupancy: Occupancy | None = None, grid: tuple[int, int, int] | None = None,
    ) -> StaticRecord:  # fmt: skip
        """The static evidence of this binary under a launch configuration."""
        return StaticRecord(
            kernel=self.name, source_hash=self.source_hash, profile=self.profile, block=block,
            dynamic_shared_bytes=dynamic_shared_bytes, occupancy=occupancy, grid=grid,
            symbol="" if self.symbol == self.name else self.symbol, cubin=self.cubin_hash, config=self.config,
        )  # fmt: skip


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
    cuda: str
    toolchain: str
    cupy: str
    timer: TimerName
    tick_ns: float
    """Step of the timer's clock, as measured."""
    overhead_ns: float
    """What a sample of an empty kernel reads beyond the kernel's own time."""
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_limit_w: int | None = None
    temperature_c: int | None = None
    ecc: bool | None = None
    mig: bool | None = None
    plugin: str = ""
    commit: str = ""
    """Of the tests' repository, as git names it; empty outside of one."""
    dirty: bool = False
    """Whether tracked files differed from that commit, those of the baseline folder aside."""


# --- time, and what a workload costs beside it ---------------------------------------------------


class RecordedRound(Record, frozen=True, kw_only=True):
    """What a record keeps of a round: all that a judge reads.  Times are nanoseconds per launch."""

    session: str
    """``Session.id`` under which it was taken."""
    midmean: float
    """Mean of the middle half, or of the core of coarse readings (``timing.samples.centre``)."""
    sm_clock_mhz: tuple[int, int] | None = None
    """SM clock before and after."""
    iqr: float = 0.0
    """Between the quartiles of its samples: what the midmean is rounded by when it is written, and not on disk."""

    def recorded(self) -> RecordedRound:
        """What a record keeps of it."""
        return self


class Round(RecordedRound, frozen=True, kw_only=True):
    """Summary of one batch of samples of one workload, as it was taken."""

    samples: int
    quantiles: tuple[float, ...]
    """5, 25, 50, 75 and 95 %."""
    minimum: float
    maximum: float

    def recorded(self) -> RecordedRound:
        return RecordedRound(
            session=self.session, midmean=self.midmean, sm_clock_mhz=self.sm_clock_mhz,
            iqr=self.quantiles[3] - self.quantiles[1],
        )  # fmt: skip


def mean_time_ns(rounds: Sequence[RecordedRound]) -> float:
    """Nanoseconds per run: the geometric mean of the rounds' midmeans."""
    return math.exp(math.fsum(math.log(one.midmean) for one in rounds) / len(rounds))


class HostTime(Record, frozen=True):
    """A time of the CPU over that of fixed work of this plugin that was done beside it."""

    ratios: tuple[float, ...]
    """One for each process that took it: the median of its blocks."""
    time_ns: float
    """What one run took there, nanoseconds; the median of the processes."""
    cpu: str
    """Model of the CPU."""
    made_by: str
    """What else it depends on: Python, the fixed work and the driver."""


class Beside(Record, frozen=True):
    """Figures of one workload; None where it was not asked for."""

    memory_bytes: int | None = None
    """Device memory that one run needs at most: arrays of a launch, and what it allocates."""
    accuracy: float | None = None
    """The error that the test's ``accuracy=`` returned."""
    host: HostTime | None = None
    """From the call of the workload to its return."""

    def updated_by(self, newer: Beside) -> Beside:
        """These figures, each in its newer state where there is one."""
        found = {name: value for name, value in msgspec.structs.asdict(newer).items() if value is not None}
        return msgspec.structs.replace(self, **found)


def updated(old: Beside | None, newer: Beside | None) -> Beside | None:
    """The figures of both, the newer one's winning: a recording without a figure keeps what is on record."""
    return newer if old is None else old if newer is None else old.updated_by(newer)


class TimeRecord(Record, frozen=True):
    """Time evidence of one workload on one GPU model: a leaf of the time baseline."""

    identity: Identity
    timer: TimerName
    cache: CacheMode
    rounds: tuple[RecordedRound, ...] = ()
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
    counters: dict[str, float] = {}
    """Of one run, by the metrics' names on GH100; medians where they were taken several times."""
    counter_ranges: dict[str, tuple[float, float]] = {}
    """Least and most of the counters that were not the same in every take of equal code."""
    beside: Beside | None = None
    """What it costs beside its time; None where nothing of that was asked for."""


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


def rounds_on(uuid: str, record: TimeRecord, sessions: Mapping[str, Session]) -> tuple[RecordedRound, ...]:
    """Those that were taken on this GPU; those of a session that is not among ``sessions`` are another GPU's."""
    return tuple(one for one in record.rounds if one.session in sessions and sessions[one.session].uuid == uuid)


def is_below(node_id: str, place: str) -> bool:
    """Whether a test is below a folder, file or class."""
    place = place.removesuffix("/__init__.py")
    return bool(place) and node_id.startswith((f"{place}/", f"{place}::"))


# --- names of toolchains -------------------------------------------------------------------------

UNKNOWN_TOOLCHAIN = "unknown"
"""Of machine code that does not say what made it: CUDA 12 and before leave the assembler out of many cubins."""


def is_known(toolchain: str) -> bool:
    """Whether the name tells one compiler from another: it has a version."""
    return any(character.isdigit() for character in toolchain)


def same_toolchain(one: str, other: str) -> bool:
    """Whether the two are known to be one compiler; two unknown ones are not."""
    return one == other and is_known(one)
