"""Evidence in, verdicts out, for one run.

What a ``TestBook`` collects leaves its test as ``TestEvidence`` on the report, which pytest-xdist carries to the
controller; ``Book`` collects those there, or in the only process, for reports, updates and guards to read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Literal

import msgspec
import pytest

from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.context.kernel_labels import CompiledKernel, labelled
from pytest_gpuperf.context.tests_found import failure_line, is_of_subtest
from pytest_gpuperf.device.device_errors import DeviceNeeded
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import Status, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement


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
        self.kernels: list[CompiledKernel] = []
        """Every kernel compiled so far, in order."""
        self.cubins: dict[str, bytes] = {}
        """Machine code of every kernel compiled so far, by SHA-256."""
        self.status: Status = "complete"
        self.reason = ""
        self.red_signature, self.severity = "", 1.0
        """What the failure of the gate has in common with others like it, and its largest ratio of times."""
        self.red_by_error = False
        """Whether an error of the plugin's own failed the test, not the gate."""
        self.unreached: tuple[Judgement, ...] = ()
        self.whole = False
        self.unrecorded: set[str] = set()
        """SHA-256 of machine code that no baseline of this test holds."""
        self.faulted = False
        """Whether it broke the GPU for its process."""
        self.memory = ""
        """Who held the GPU's memory when there was none left for it; empty if there was."""
        self.ended_in: Literal["", "setup", "call"] = ""
        """The phase that ended the test; empty while it runs."""
        self.subtest_stopped = False
        """Whether a subtest stopped early, and the test went on."""
        self.shared: tuple[TestBook, ...] = ()
        """Of fixtures that the test shares with others."""
        self.answers_for: tuple[TestBook, ...] = ()
        """Those of them that are judged in this test, the first user."""
        self.failed_in_thread: BaseException | None = None
        """What a workload raised in another thread than the test's, where Python ends the thread alone."""
        self._thread = threading.get_ident()

    def key(self, workload: str) -> Key:
        return Key(module=self.module, test=self.test, workload=workload)

    def note_failure(self, problem: BaseException) -> None:
        """Keep what a workload raised, if the test may not see it."""
        if threading.get_ident() != self._thread and not isinstance(problem, CheckedOnly | DeviceNeeded):
            self.failed_in_thread = problem

    def stop(self, status: Status, reason: str) -> None:
        """Note that the test did not get to see all there is to see."""
        self.status, self.reason = status, reason

    def add_compiled(
        self, name: str, records: Mapping[str, StaticRecord], toolchain: str, options: Sequence[str], file: str
    ) -> None:
        """Note a kernel; until a workload launches it, it stands for itself.  Raises ``TestOver``."""
        self._require_open(f"the kernel {name}")
        known = next((kernel for kernel in reversed(self.kernels) if kernel.name == name), None)
        before: Mapping[str, StaticRecord] = {}
        if known is not None and not known.is_another(records, toolchain):
            self.kernels.remove(known)
            before, options, file = known.evidence.static, known.options, known.file
        static = {**before, **records}
        evidence = WorkloadEvidence(key=self.key(name), static=static, toolchain=toolchain, launched=False)
        self.kernels.append(CompiledKernel(evidence, tuple(options), file))

    def open(self, workload: str) -> Key:
        """Reserve a workload name.  Raises ``DuplicateWorkload`` and ``TestOver``."""
        self._require_open(f"the workload {workload!r}")
        if workload in self.workloads:
            raise DuplicateWorkload(
                f"{self.module}::{self.test}: the workload name {workload!r} is used twice; "
                f"give each its own: gpuperf(..., name='...')"
            )
        evidence = self.workloads[workload] = WorkloadEvidence(key=self.key(workload))
        return evidence.key

    def _require_open(self, what: str) -> None:
        if self.ended_in:
            raise TestOver(
                f"{self.module}::{self.test}: {what} comes after the test's end and would not be judged; "
                "ask for it in the test, or in a fixture before its yield"
            )

    def add(self, evidence: WorkloadEvidence) -> None:
        self.workloads[evidence.key.workload] = evidence

    def unlaunched(self, *, stopped: bool = False) -> list[WorkloadEvidence]:
        """Kernels that were compiled but belong to no workload; several of one name by what they differ in.

        A test that ``stopped`` early may still have come to launch the others under names of their own: where nothing
        tells several apart, the last is told.  Raises ``AmbiguousKernel``.
        """
        alone = [one for one in self.kernels if not any(map(one.is_launched_by, self.workloads.values()))]
        if stopped:
            alone.reverse()
        return list(labelled(alone, self.kernels, self.workloads, refuse=not stopped))


class Book:
    """The results of all tests of this run, in the process that reports."""

    def __init__(self) -> None:
        self.results: dict[str, TestEvidence] = {}
        self.tests_run = 0
        self._seconds: dict[str, float] = {}
        self._answer_for: dict[str, set[str]] = {}
        """Tests that answer for the kernels of a fixture, by the name of both."""
        self._heavy: dict[str, pytest.TestReport] = {}
        """Reports with the evidence of a test that is being told."""
        self._failed: dict[str, str] = {}
        """Why, in a line."""
        self.failed_as_expected: set[str] = set()
        """Those that pytest calls xfailed: green, and wrong all the same."""

    def collect(self, report: pytest.TestReport) -> None:
        """Take what a report carries; call for every phase of every test."""
        payload = getattr(report, "gpuperf", None)
        if report.when == "call" or (report.when == "setup" and payload is not None):
            self.tests_run += 1  # evidence of a setup: it ended the test
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if payload is not None:
            self.results[report.nodeid] = msgspec.json.decode(payload, type=TestEvidence)
            self._heavy[report.nodeid] = report
            for one in msgspec.json.decode(getattr(report, "gpuperf_shared", "[]"), type=list[TestEvidence]):
                self.results[one.node_id] = one  # a worker of pytest-xdist may have found the same
                self._answer_for.setdefault(one.node_id, set()).add(report.nodeid)
        if report.failed:
            self._failed.setdefault(report.nodeid, failure_line(report) or "it failed")
        if report.skipped and hasattr(report, "wasxfail") and not is_of_subtest(report):
            self.failed_as_expected.add(report.nodeid)

    def told(self, node_id: str) -> None:
        """Take the evidence from a report that every plugin has seen: pytest keeps reports, and it is most of them."""
        report = self._heavy.pop(node_id, None)
        if report is not None:
            report.gpuperf = ""  # type: ignore[attr-defined]

    def seconds(self, node_ids: Iterable[str]) -> float:
        """Wall-clock time that these tests took, set-up and teardown included."""
        return sum(self._seconds.get(node, 0.0) for node in node_ids)

    @property
    def evidence(self) -> list[TestEvidence]:
        return list(self.results.values())

    @property
    def unreached(self) -> list[Judgement]:
        """Of workloads that tests stopped too early for."""
        return [judgement for evidence in self.evidence for judgement in evidence.unreached]

    @property
    def judgements(self) -> list[Judgement]:
        return [judgement for evidence in self.evidence for judgement in evidence.judgements]

    def accepted(self) -> list[TestEvidence]:
        """Evidence of tests that passed in every phase, gate included: all that may become a baseline.

        A fixture's is that of a test that answers for it.
        """
        not_passed = self._failed.keys() | self.failed_as_expected
        return [one for node, one in self.results.items() if self.answering_for(node) - not_passed]

    def answering_for(self, node_id: str) -> Set[str]:
        """Node ids of the tests in which it is judged: its own, or a fixture's users'."""
        return self._answer_for.get(node_id, {node_id})

    @property
    def failures(self) -> Mapping[str, str]:
        """By the node id of a test that failed: why, in a line."""
        return self._failed

    @property
    def any_failed(self) -> bool:
        return bool(self._failed)

    @property
    def gathered_anything(self) -> bool:
        return any(work.static or work.time or work.counters for one in self.evidence for work in one.workloads)

    @property
    def gathered_counters(self) -> bool:
        return any(work.counters for one in self.evidence for work in one.workloads)

    @property
    def judged_times(self) -> bool:
        return any(judgement.kind == "time" for judgement in self.judgements)
