"""``gpuperf report``: other forms of a run that is over."""

from __future__ import annotations

import json

import msgspec
import pytest

from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.context import last_run
from pytest_gpuperf.context.repository import Commit
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.document import document_of

KEY = Key(module="test_a.py", test="test_b", workload="scan")
WORSE = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.WORSE, reason="it spills")
EVIDENCE = TestEvidence(
    module="test_a.py", test="test_b",
    workloads=(WorkloadEvidence(key=KEY, judgements=(WORSE,)),),
)  # fmt: skip


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = document_of(
        [EVIDENCE], date="2026-11-22T12:00:00Z", plugin="0.1.0", task="gating", exit_status=1, problems=["red"],
        warnings=[], machines=["NVIDIA H200"],
    )  # fmt: skip
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(document.report))
    return tmp_path


def test_a_report_has_the_form_of_its_ending(report, capsys):
    assert main(["report", "run.json", "--output", "a.html", "--output", "a.md", "--output", "a.json"]) == 0
    assert capsys.readouterr().out.count("report written to") == 3
    assert "1 WORSE" in (report / "a.html").read_text()
    assert "it spills" in (report / "a.md").read_text()
    assert json.loads((report / "a.json").read_text()) == json.loads((report / "run.json").read_text())
    assert main(["report", "run.json"]) == 0
    assert capsys.readouterr().out == (report / "a.md").read_text()


def test_without_a_report_it_is_the_last_run(report, capsys):
    run = last_run.LastRun(
        schema=last_run.SCHEMA, date="2026-11-22T12:00:00Z", plugin="0.1.0", baselines=str(report), tests=(EVIDENCE,)
    )
    last_run.keep(report, run)
    assert main(["report"]) == 0
    assert "## gpuperf: 1 WORSE" in capsys.readouterr().out


def part(folder, name, test, verdict, *, status=0, commit="c0"):
    key = Key(module="test_a.py", test=test, workload="scan")
    judged = Judgement(key=key, target="sm_90", kind="static", verdict=verdict)
    work = WorkloadEvidence(key=key, judgements=(judged,))
    document = document_of(
        [TestEvidence(module="test_a.py", test=test, workloads=(work,))], date="2026-11-22T12:00:00Z", plugin="0.1.0",
        task="gating", exit_status=status, problems=[], warnings=["a remark"], machines=["NVIDIA H200"],
        commit=Commit(commit),
    )  # fmt: skip
    (folder / name).write_bytes(msgspec.json.encode(document.report))


def test_reports_of_several_jobs_are_one(report, capsys):
    part(report, "1.json", "test_b", Verdict.SAME)
    part(report, "2.json", "test_c", Verdict.WORSE, status=1)
    assert main(["report", "1.json", "2.json", "--output", "whole.json"]) == 0
    whole = json.loads((report / "whole.json").read_text())
    assert [one["test"] for one in whole["tests"]] == ["test_b", "test_c"]
    assert (whole["verdicts"], whole["exit_status"]) == ({"WORSE": 1, "SAME": 1}, 1)
    assert (whole["warnings"], whole["machines"], whole["commit"]) == (["a remark"], ["NVIDIA H200"], "c0")
    part(report, "2.json", "test_c", Verdict.WORSE, commit="c1")
    assert main(["report", "1.json", "2.json"]) == 1
    assert "the reports are of several commits (c0, c1): name those of one run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [(None, ["run2.json"], "cannot be read"), ("{", ["bad.json"], "is no report of a run"),
     ('{"schema": 1}', ["bad.json"], "has schema 1, this version reads"), ("[]", ["bad.json"], "is no report"),
     (None, ["run.json", "--output", "a.txt"], "none of the endings"), (None, [], "there is no last run")],
)  # fmt: skip
def test_what_cannot_be_reported_says_why(report, capsys, content, arguments, says):
    if content is not None:
        (report / "bad.json").write_text(content)
    assert main(["report", *arguments]) == 1
    assert says in capsys.readouterr().err
