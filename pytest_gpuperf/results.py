"""The results of all tests of a run, in the process that reports: the only one, or the controller of pytest-xdist.

What a ``TestRecord`` holds leaves its test as ``TestEvidence`` on pytest's report; here it is collected for reports,
updates and guards to read.
"""

from __future__ import annotations

import msgspec
import pytest

from pytest_gpuperf.context.tests_found import failure_line, is_of_subtest
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Judgement


class Results:
    """What the tests of a run found, and how they ended."""

    def __init__(self) -> None:
        self.results: dict[str, TestEvidence] = {}
        """By node id."""
        self.tests_run = 0
        self.failures: dict[str, str] = {}
        """By the node id of a test that failed: why, in a line."""
        self.failed_as_expected: set[str] = set()
        """Tests that pytest calls xfailed: green, and wrong all the same."""
        self._heavy: dict[str, pytest.TestReport] = {}
        """Reports with the evidence of a test that not every plugin has seen."""

    def collect(self, report: pytest.TestReport) -> None:
        """Take what a report carries; call for every phase of every test."""
        payload = getattr(report, "gpuperf", None)
        if report.when == "call" or (report.when == "setup" and payload is not None):
            self.tests_run += 1  # evidence of a setup: it ended the test
        if payload is not None:
            self.results[report.nodeid] = msgspec.json.decode(payload, type=TestEvidence)
            self._heavy[report.nodeid] = report
        if report.failed:
            self.failures.setdefault(report.nodeid, failure_line(report) or "it failed")
        if report.skipped and hasattr(report, "wasxfail") and not is_of_subtest(report):
            self.failed_as_expected.add(report.nodeid)

    def told(self, node_id: str) -> None:
        """Take the evidence from a report that every plugin has seen: pytest keeps reports, and it is most of them."""
        report = self._heavy.pop(node_id, None)
        if report is not None:
            report.gpuperf = ""  # type: ignore[attr-defined]

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
        """Evidence of tests that passed in every phase, gate included: all that may become a baseline."""
        not_passed = self.failures.keys() | self.failed_as_expected
        return [one for node, one in self.results.items() if node not in not_passed]

    @property
    def gathered_anything(self) -> bool:
        return any(work.static or work.time or work.counters for one in self.evidence for work in one.workloads)
