"""What one test found, as it travels from the process that ran it to the one that reports, and what came of a run."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import Key, Record, StaticRecord
from pytest_gpuperf.model.time_record import CacheMode, Identity, SecondaryMetrics, Session, TimeRecord
from pytest_gpuperf.model.verdict import Advice, Judgement, TimeFigures

Dim3 = tuple[int, int, int]
Status = Literal["complete", "static only", "checked only"]


class TracedLaunch(NamedTuple):
    """One launch of a run, as the driver recorded it."""

    symbol: str
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int = 0
    registers: int = 0
    """Per thread."""
    clustered: bool = False
    cubin: bytes = b""
    """Loaded machine code with this kernel; empty where it is not known which one was launched."""


class LaunchedKernel(Record, frozen=True):
    """One of the kernels that a callable launches, by one configuration."""

    name: str
    """``softmax_warp_forward``; of several of a name, the second is ``softmax_warp_forward [2]``."""
    symbol: str
    grid: Dim3
    """Of its first launch."""
    block: Dim3
    launches: int = 1
    """Of one run."""
    dynamic_shared_bytes: int = 0
    registers: int = 0
    """Per thread."""
    stack_bytes: int | None = None
    """Local memory per thread, of spilled registers and arrays; None where the machine code is not known."""
    cubin: str = ""
    """SHA-256 of the loaded cubin; empty where it is not known which one that is."""
    code: str = ""
    """``StaticProfile.code_hash``; empty as above."""
    time_ns: float | None = None
    """Of one run, all launches of this symbol; None where that is not known."""


class WorkloadEvidence(Record, frozen=True):
    """All that one test found out about one workload."""

    key: Key
    static: dict[str, StaticRecord] = msgspec.field(default_factory=dict)
    """By architecture."""
    toolchain: str = ""
    """That made the machine code: ``nvrtc 13.0.88``; empty without static evidence."""
    identity: Identity | None = None
    """What ran; None where nothing did."""
    cache: CacheMode | None = None
    """State of the L2 that it would be timed in, of what ran or would run; None where nothing would."""
    time: TimeRecord | None = None
    interval_ns: tuple[float, float] | None = None
    elapsed_ns: float | None = None
    """From its first start to its last end; None where that is no other than the sum of its kernels."""
    counters: dict[str, float] = msgspec.field(default_factory=dict)
    """Raw ones by canonical name, as Nsight Compute counted them."""
    counter_ranges: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Least and most of those that were not the same in every take, where there were several."""
    baseline_counters: dict[str, float] = msgspec.field(default_factory=dict)
    """Of the baseline: those of its machine code in this run, else those that are recorded."""
    ncu_report: str = ""
    """File that Nsight Compute opens, as seen from pytest's root; empty where none is kept."""
    ncu_range: str = ""
    """NVTX range of the workload in that file; that of its baseline ends in ``:baseline``."""
    kernels: tuple[LaunchedKernel, ...] = ()
    """Of a callable: what it launches."""
    baseline_kernels: dict[str, float] = msgspec.field(default_factory=dict)
    """Of what it is compared with: nanoseconds per run of each kernel, by symbol."""
    secondary: SecondaryMetrics | None = None
    """Secondary metrics that this process measured; None where the test asked for none."""
    judgements: tuple[Judgement, ...] = ()
    disturbances: tuple[str, ...] = ()
    """Why the time should not become a baseline; empty if nothing speaks against it."""
    launched: bool = True
    """False for a kernel that was compiled and not handed to ``gpuperf``."""
    advice: tuple[Advice, ...] = ()
    """Causes of what changed for the worse: of what gates first, then the likeliest gain."""
    tolerance: float | None = None
    """Slowdown that is accepted of its time, as a fraction; None for a kernel that nothing launches."""
    was: Key | None = None
    """Of a NEW one: the record without a test that it seems to continue under another name."""

    @property
    def is_captured(self) -> bool:
        """Whether it is a kernel of a callable, called ``CALLABLE: KERNEL``."""
        return any(record.captured for record in self.static.values())

    @property
    def owner(self) -> Key:
        """The workload that is timed: of a captured kernel its callable."""
        name = self.key.workload.rpartition(": ")[0] if self.is_captured else self.key.workload
        return msgspec.structs.replace(self.key, workload=name)

    @property
    def time_judgement(self) -> Judgement | None:
        """The one on its time; None if that was not judged."""
        return next((one for one in self.judgements if one.kind == "time"), None)

    @property
    def time_figures(self) -> TimeFigures | None:
        judged = self.time_judgement
        return judged.time if judged is not None else None


class TestEvidence(Record, frozen=True):
    """What travels from the process that ran a test to the one that reports."""

    __test__ = False

    module: str
    test: str
    status: Status = "complete"
    reason: str = ""
    """Of the status, if it is not complete."""
    whole: bool = False
    """The test ran to its end: no failure of its own, skip or need for a GPU ended it, nor a subtest of it."""
    device: DeviceFacts | None = None
    session: Session | None = None
    workloads: tuple[WorkloadEvidence, ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    """What the test recorded with pytest's ``record_property``, as text."""
    peaks: dict[str, float] = msgspec.field(default_factory=dict)
    """Ceilings of the GPU, recorded or measured so far: ``copy_bandwidth``, roofs by name (``dram``); per second."""
    cubins: dict[str, bytes] = msgspec.field(default_factory=dict)
    """Machine code that no baseline of this test holds, by SHA-256, compressed by zlib."""

    @property
    def node_id(self) -> str:
        return f"{self.module}::{self.test}"

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for workload in self.workloads for judgement in workload.judgements]


def unpacked(tests: Iterable[TestEvidence]) -> dict[str, bytes]:
    """Machine code that tests brought along, by SHA-256."""
    return {sha256: zlib.decompress(packed) for test in tests for sha256, packed in test.cubins.items()}


class Recorded(Record, frozen=True):
    """One baseline that an update wrote or refused."""

    key: Key
    target: str
    before: TimeRecord | StaticRecord | None = None
    after: TimeRecord | StaticRecord | None = None
    refused: str = ""
    """Why nothing was written; empty if it was."""


@dataclasses.dataclass
class Outcome:
    """What the end of a run has to tell its summary."""

    recorded: list[Recorded] = dataclasses.field(default_factory=list)
    updated: bool = False
    """The update is complete."""
    problem: str = ""
    nothing: str = ""
    missing: tuple[str, ...] = ()
    """Missing records that fail the run, a line for each cause."""
    left_out: tuple[str, ...] = ()
    """Missing records that fail nothing, and other remarks, a line each."""
    counter_notes: tuple[str, ...] = ()
    """Remarks on the collection of counters."""
    reports: tuple[str, ...] = ()
    """Files that reports were written to."""
    unwritten: tuple[str, ...] = ()
    """What kept others from being written."""

    @property
    def failed(self) -> bool:
        """Whether the run fails, whatever its tests did."""
        return bool(self.problem or self.missing or any(one.refused for one in self.recorded))

    @property
    def errors(self) -> list[str]:
        """What speaks against the run as a whole."""
        return [text for text in (self.problem, self.nothing, *self.missing) if text]
