"""``gpuperf report``: other forms of a run that is over."""

from __future__ import annotations

import json

import msgspec
import pytest
from record_samples import report_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.document import document_of

KEY = Key(module="test_a.py", test="test_b", workload="scan")
WORSE = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.WORSE, reason="it spills")
EVIDENCE = TestEvidence(module="test_a.py", test="test_b", workloads=(WorkloadEvidence(key=KEY, judgements=(WORSE,)),))


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = document_of(report_of(EVIDENCE, problems=("red",)))
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(document.report))
    return tmp_path


def test_a_report_has_the_form_of_its_ending(report, command):
    status, said, _ = command("report", "run.json", "--output", "a.html", "--output", "a.md", "--output", "a.json")
    assert (status, said.count("report written to")) == (0, 3)
    assert "1 WORSE" in (report / "a.html").read_text()
    assert "it spills" in (report / "a.md").read_text()
    assert json.loads((report / "a.json").read_text()) == json.loads((report / "run.json").read_text())
    assert command("report", "run.json") == (0, (report / "a.md").read_text(), "")


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [(None, ["run2.json"], "cannot be read"), ("{", ["bad.json"], "is no report of a run"),
     ('{"schema": 1}', ["bad.json"], "has schema 1, this version reads"), ("[]", ["bad.json"], "is no report"),
     (None, ["run.json", "--output", "a.txt"], "none of the endings")],
)  # fmt: skip
def test_what_cannot_be_reported_says_why(report, command, content, arguments, says):
    if content is not None:
        (report / "bad.json").write_text(content)
    status, _, problem = command("report", *arguments)
    assert (status, says in problem) == (1, True)


def test_reports_of_jobs_that_divided_the_tests_are_joined(report, command):
    test = msgspec.structs.replace(EVIDENCE, test="test_c")
    other = report_of(test, date="2026-11-22T13:00:00Z", exit_status=0, problems=("red",))
    (report / "other.json").write_bytes(msgspec.json.encode(other))
    assert command("report", "run.json", "other.json", "--output", "whole.json")[0] == 0
    whole = json.loads((report / "whole.json").read_text())
    assert [test["test"] for test in whole["tests"]] == ["test_b", "test_c"]
    assert (whole["exit_status"], whole["date"], whole["problems"]) == (1, "2026-11-22T13:00:00Z", ["red"])
    assert (whole["task"], whole["machines"]) == ("2 jobs: gating", ["NVIDIA H200"])


def test_reports_of_several_commits_or_that_judge_a_test_differently_are_not_joined(report, command):
    better = msgspec.structs.replace(WORSE, verdict=Verdict.BETTER)
    work = WorkloadEvidence(key=KEY, judgements=(better,))
    other = report_of(msgspec.structs.replace(EVIDENCE, workloads=(work,)), exit_status=0)
    (report / "other.json").write_bytes(msgspec.json.encode(other))
    assert command("report", "run.json", "run.json")[0] == 0
    status, _, problem = command("report", "run.json", "other.json")
    assert (status, "run.json and other.json judge test_a.py::test_b differently" in problem) == (1, True)
    (report / "other.json").write_bytes(msgspec.json.encode(report_of(EVIDENCE, commit="c1")))
    status, _, problem = command("report", "run.json", "other.json")
    assert (status, "run.json and other.json are of different commits" in problem) == (1, True)
