"""Evidence in, verdicts out, for one run.

``TestBook`` collects what one test found while it runs.  It leaves the test as ``TestEvidence`` on the
test report, which pytest-xdist carries to the controller; ``Book`` collects those in the controller (or
the only process) and is what reports, updates and the nothing-measured guard read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import pytest

from pytest_gpuperf import namesakes
from pytest_gpuperf.advise.record import Advice, State
from pytest_gpuperf.evidence import DeviceFacts, Identity, Key, Record, Session, StaticRecord, TimeRecord
from pytest_gpuperf.verdict import Judgement

Status = Literal["complete", "static only", "checked only"]


class WorkloadEvidence(Record, frozen=True):
    """All that one test found out about one workload."""

    key: Key
    static: dict[str, StaticRecord] = msgspec.field(default_factory=dict)
    """By architecture."""
    toolchain: str = ""
    """That made the machine code: ``nvrtc 13.0.88``; empty without static evidence."""
    identity: Identity | None = None
    """What ran; None where nothing did."""
    time: TimeRecord | None = None
    interval_ns: tuple[float, float] | None = None
    counters: dict[str, float] = msgspec.field(default_factory=dict)
    """Raw ones by canonical name, as Nsight Compute counted them."""
    counter_ranges: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Least and most of those that were not the same in every take, where there were several."""
    judgements: tuple[Judgement, ...] = ()
    disturbances: tuple[str, ...] = ()
    """Why the time should not become a baseline; empty if nothing speaks against it."""
    seconds: float = 0.0
    """Wall-clock seconds that timing and judging it took in this process, the test's own check excluded."""
    launched: bool = True
    """False for a kernel that was compiled and not handed to ``gpuperf``."""
    advice: tuple[Advice, ...] = ()
    """Causes of what changed for the worse: of what gates first, then the likeliest gain."""
    state: State | None = None
    """What holds the workload back; None if nothing tells, or nobody asked."""

    @property
    def time_judgement(self) -> Judgement | None:
        """The one on its time; None if that was not judged."""
        return next((judgement for judgement in self.judgements if judgement.kind == "time"), None)


class SentinelReading(Record, frozen=True):
    """A launch paired with itself: what it shows is the machine's doing."""

    workload: str
    ratio: float
    blocks: int
    log_e_slower: float
    log_e_faster: float
    seed: int

    @property
    def alarm(self) -> bool:
        """Whether the two came out different."""
        from pytest_gpuperf.judge.suite import sentinel_alarm

        return sentinel_alarm(self.log_e_slower, self.log_e_faster)


class TestEvidence(Record, frozen=True):
    """What travels from the process that ran a test to the one that reports."""

    __test__ = False

    module: str
    test: str
    status: Status = "complete"
    reason: str = ""
    """Why the test stopped early."""
    device: DeviceFacts | None = None
    session: Session | None = None
    workloads: tuple[WorkloadEvidence, ...] = ()
    xfail: str = ""
    """The reason why a regression of this test is expected."""
    sentinel: SentinelReading | None = None
    red_on_time: bool = False
    """The gate failed it, and for nothing but its times."""
    unreached: tuple[Judgement, ...] = ()
    """NOT-MEASURED: workloads on record that it stopped too early for."""
    whole: bool = False
    """A gated test that ran to its end on a GPU: it has no workloads but these."""
    canaries: dict[str, float] = msgspec.field(default_factory=dict)
    """Log of each canary's time over that on record, as far as this process had come; by name."""
    peaks: dict[str, float] = msgspec.field(default_factory=dict)
    """Ceilings of the GPU that were measured so far: ``copy_bandwidth``, ``fma_throughput``; per second."""

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for workload in self.workloads for judgement in workload.judgements]


class DuplicateWorkload(ValueError):
    """One test used a workload name twice."""


class TestOver(RuntimeError):
    """A kernel or a workload after its test's end, when nothing is judged any more."""

    __test__ = False


class TestBook:
    """What one test found so far."""

    __test__ = False

    def __init__(self, module: str, test: str) -> None:
        self.module = module
        self.test = test
        self.workloads: dict[str, WorkloadEvidence] = {}
        self.compiled: dict[str, WorkloadEvidence] = {}
        """Static evidence of every kernel compiled so far, by kernel name; of several of one name, the last."""
        self._earlier: list[WorkloadEvidence] = []
        """Kernels that another one of their name came after."""
        self.status: Status = "complete"
        self.reason = ""
        self.red_on_time = False
        self.unreached: tuple[Judgement, ...] = ()
        self.whole = False
        self.ended_in: Literal["", "setup", "call"] = ""
        """The phase that ended the test; empty while it runs."""
        self.subtest_stopped = False
        """Whether a subtest stopped early, and the test went on."""

    def key(self, workload: str) -> Key:
        return Key(module=self.module, test=self.test, workload=workload)

    def stop(self, status: Status, reason: str) -> None:
        """Note that the test did not get to see all there is to see."""
        self.status, self.reason = status, reason

    def add_compiled(self, name: str, records: Mapping[str, StaticRecord], toolchain: str) -> None:
        """Note a kernel; until a workload launches it, it stands for itself.  Raises ``TestOver``."""
        self._require_open(f"the kernel {name}")
        known = self.compiled.get(name)
        if known is not None and namesakes.is_another(known, records, toolchain):
            self._earlier.append(known)
            known = None
        before = known.static if known is not None else {}
        self.compiled[name] = WorkloadEvidence(
            key=self.key(name), static={**before, **records}, toolchain=toolchain, launched=False
        )

    def open(self, workload: str) -> Key:
        """Reserve a workload name.  Raises ``DuplicateWorkload`` and ``TestOver``."""
        self._require_open(f"the workload {workload!r}")
        if workload in self.workloads:
            raise DuplicateWorkload(
                f"{self.module}::{self.test}: the workload name {workload!r} is used twice; "
                f"give each its own: gpuperf(..., name='...')"
            )
        key = self.key(workload)
        self.workloads[workload] = WorkloadEvidence(key=key)
        return key

    def _require_open(self, what: str) -> None:
        if self.ended_in:
            raise TestOver(
                f"{self.module}::{self.test}: {what} comes after the test's end and would not be judged; "
                "ask for it in the test, or in a fixture before its yield"
            )

    def add(self, evidence: WorkloadEvidence) -> None:
        self.workloads[evidence.key.workload] = evidence

    def unlaunched(self, *, stopped: bool = False) -> list[WorkloadEvidence]:
        """Kernels that were compiled but belong to no workload.

        Of several of one name the last has it, and those before are ``name (1)``, ``name (2)`` in their order; so is
        a kernel whose name a callable has, and one of other code than what was launched under its name.  A test that
        ``stopped`` early may still have come to launch the earlier ones, and then only the last is told.
        """
        launched = {record.kernel for work in self.workloads.values() for record in work.static.values()}
        found = {name: evidence for name, evidence in self.compiled.items() if name not in launched}
        alone = [evidence for name, evidence in found.items() if name not in self.workloads]
        if stopped:
            others = [evidence for name, evidence in found.items() if name in self.workloads]
        else:
            compiled = [*self._earlier, *self.compiled.values()]
            others = [evidence for evidence in compiled if not (evidence in alone or self._is_launched(evidence))]
        return [*alone, *namesakes.numbered(others, alone, self.workloads)]

    def _is_launched(self, kernel: WorkloadEvidence) -> bool:
        return any(namesakes.is_of(work, kernel) for work in self.workloads.values())


class TestResult:
    """One finished test as the controller knows it."""

    __test__ = False

    def __init__(self, evidence: TestEvidence) -> None:
        self.evidence = evidence
        self.passed = True
        """No phase failed, gate included, and none failed as ``pytest.mark.xfail`` expects."""


class Book:
    """The results of all tests of this run, in the process that reports."""

    def __init__(self) -> None:
        self.results: dict[str, TestResult] = {}
        self.tests_run = 0
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._failed_as_expected: set[str] = set()
        """Those that pytest calls xfailed: green, and wrong all the same."""

    def collect(self, report: pytest.TestReport) -> None:
        """Take what a report carries; call for every phase of every test."""
        payload = getattr(report, "gpuperf", None)
        if report.when == "call" or (report.when == "setup" and payload is not None):
            self.tests_run += 1  # evidence of a setup: it ended the test
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if payload is not None:
            self.results[report.nodeid] = TestResult(msgspec.json.decode(payload, type=TestEvidence))
        if report.failed:
            self._failed.add(report.nodeid)
        if report.skipped and hasattr(report, "wasxfail"):
            self._failed_as_expected.add(report.nodeid)
        result = self.results.get(report.nodeid)
        if result is not None:
            result.passed = not any(report.nodeid in those for those in (self._failed, self._failed_as_expected))

    def seconds(self, node_ids: Iterable[str]) -> float:
        """Wall-clock time that these tests took, set-up and teardown included."""
        return sum(self._seconds.get(node, 0.0) for node in node_ids)

    @property
    def evidence(self) -> list[TestEvidence]:
        return [result.evidence for result in self.results.values()]

    @property
    def unreached(self) -> list[Judgement]:
        """Of workloads that tests stopped too early for."""
        return [judgement for evidence in self.evidence for judgement in evidence.unreached]

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for evidence in self.evidence for judgement in evidence.judgements]

    def accepted(self) -> Iterable[TestEvidence]:
        """Evidence of tests that passed in every phase: all that may become a baseline."""
        return [result.evidence for result in self.results.values() if result.passed]

    @property
    def only_times_failed(self) -> bool:
        """Whether every test that failed has nothing against it but its times."""
        failed = [self.results.get(node) for node in self._failed]
        return bool(failed) and all(one is not None and one.evidence.red_on_time for one in failed)

    @property
    def canaries(self) -> dict[str, float]:
        """Log of each canary's time over that on record, from the process in which it moved the most; by name."""
        from pytest_gpuperf.judge.canaries import furthest

        return furthest(evidence.canaries for evidence in self.evidence)

    @property
    def any_failed(self) -> bool:
        return bool(self._failed)

    @property
    def gathered_anything(self) -> bool:
        return any(
            work.static or work.time or work.counters for evidence in self.evidence for work in evidence.workloads
        )

    @property
    def gathered_counters(self) -> bool:
        return any(work.counters for evidence in self.evidence for work in evidence.workloads)

    @property
    def judged_times(self) -> bool:
        return any(judgement.kind == "time" for judgement in self.judgements)


def encode(evidence: TestEvidence) -> str:
    """As text, so that it may ride on a test report through pytest-xdist."""
    return msgspec.json.encode(evidence).decode()
