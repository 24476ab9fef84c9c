"""``--gpuperf-report``: what the run found, as JSON, Markdown and HTML."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from page_tags import Page
from suite_under_test import TEST

from pytest_gpuperf.report.document import RunReport

ALL = "--gpuperf-report=out.json,out.md,out.html"


def written(suite):
    report = msgspec.json.decode((suite.path / "out.json").read_bytes(), type=RunReport)
    page = Page((suite.path / "out.html").read_text(encoding="utf-8"))
    return report, (suite.path / "out.md").read_text(encoding="utf-8"), page


@pytest.fixture
def slower(recorded):
    """``work`` does twice the work."""
    recorded.edit("work.cu", "k < STEPS", "k < 2 * STEPS")
    return recorded


def test_regression_leads_every_report_with_its_words(slower):
    records = "def test_other(record_property, cuda_kernel, gpu, gpuperf):\n    record_property('turns', 3)"
    slower.edit("test_suite.py", "def test_other(cuda_kernel, gpu, gpuperf):", records)
    result = slower.run("--gpuperf", ALL, "-n", "2")
    assert result.ret == 1
    for name in ("out.json", "out.md", "out.html"):
        result.stdout.fnmatch_lines([f"report written to *{name}"])
    report, markdown, page = written(slower)
    assert report.exit_status == 1
    assert report.verdicts == {"SLOWER": 2, "UNCHANGED": 1}
    assert sum(len(test.workloads) for test in report.tests) == 3
    title = "gpuperf: 2 SLOWER, 1 UNCHANGED"
    assert markdown.splitlines()[1] == f"## {title}"
    assert title in page.text
    for text in (markdown, page.text):
        assert re.search(r"work +SLOWER +on simulated-gpu \(time\) +x1\.6\d\d \[", text)
        assert "cause: instruction growth" in text
        assert text.rindex("cause: ") < text.index("doubling")
        assert "Simulated GPU" in text  # the machine that the times come from
    told, passed = markdown.split("1 workload passed")
    assert told.count("<details open>\n<summary>work of test_suite.py::test_work[") == 2
    assert told.count("| **SLOWER** | <code>work</code><br>") == 2
    assert passed.count("| UNCHANGED | <code>doubling</code><br>") == 1
    assert [attributes.get("open", "no") for tag, attributes in page.tags if tag == "details"] == [None, "no"]
    first = next(work for test in report.tests for work in test.workloads if work.key.workload == "work")
    assert [test.properties for test in report.tests if test.test == "test_other"] == [{"turns": "3"}]
    figures = first.time_judgement.time
    assert figures.blocks > 0


def test_github_job_gets_a_summary_behind_those_of_other_steps(recorded, tmp_path, monkeypatch):
    summary = tmp_path / "summary"
    summary.write_text("# another step\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = recorded.run("--gpuperf", "--gpuperf-report=github", "-k", "other")
    assert result.ret == 0
    text = summary.read_text()
    assert text.startswith("# another step\n")
    assert "## gpuperf: 1 UNCHANGED" in text
    assert sorted(path.name for path in recorded.path.glob("*github*")) == []
    result.stdout.no_fnmatch_line("::*")
    recorded.edit("other.cu", "2.0f", "3.0f + n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(recorded.path.parent))
    result = recorded.run("--gpuperf", "--gpuperf-report=github", "-k", "other")
    said = f"::error file={recorded.path.name}/*,line=*,title=gpuperf%3A doubling SLOWER::doubling  SLOWER  on *%0A*"
    result.stdout.fnmatch_lines([said])
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    result = recorded.run("--gpuperf", "--gpuperf-report=github", "-k", "other")
    for words in ("report written*", "*ERROR:*", "::*"):
        result.stdout.no_fnmatch_line(words)


def test_ini_setting_is_relative_to_the_root_and_flags_add_up(recorded, monkeypatch):
    (recorded.path / "pytest.ini").write_text("[pytest]\ngpuperf_report = out.md\n")
    below = recorded.path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert recorded.run("--gpuperf", "-k", "other", "..").ret == 0
    assert (recorded.path / "out.md").exists()
    (recorded.path / "out.md").unlink()
    assert recorded.run("-k", "other", "..").ret == 0  # nothing is measured, nothing is told
    assert not (recorded.path / "out.md").exists()
    (recorded.path / "pytest.ini").write_text("[pytest]\naddopts = --gpuperf-report=usual.json\n")
    flags = ("--gpuperf-report=mine.md,a.json", "--gpuperf-report", "a.json")
    result = recorded.run("--gpuperf", "-k", "other", *flags, "..")
    assert result.ret == 0
    assert result.stdout.str().count("report written to ") == 3
    assert all((below / name).exists() for name in ("usual.json", "mine.md", "a.json"))


def test_report_that_cannot_be_written_loses_no_other_and_is_no_success(recorded):
    """A file in the place of its folder."""
    recorded.write("gone", "")
    result = recorded.run("--gpuperf", "-k", "other", "--gpuperf-report=gone/out.md,out.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["report written to *out.json", "ERROR: the report *gone/out.md could not be written*"])
    assert json.loads((recorded.path / "out.json").read_text())["verdicts"] == {"UNCHANGED": 1}


FAILS = {
    '    kernel = cuda_kernel("other.cu"': '    assert not "right"\n    kernel = cuda_kernel("other.cu"',
    "def test_other(cuda_kernel": "def test_other(no_such_fixture, cuda_kernel",
    "def test_other": "def gone",
}


def test_run_that_failed_for_another_reason_does_not_read_as_a_green_one(recorded, monkeypatch):
    """Its verdicts are those of a run that passes: a comment has to say in its first line that this one did not."""
    monkeypatch.setenv("CI", "true")
    assert recorded.run("--gpuperf", ALL).ret == 0
    _, markdown, page = written(recorded)
    assert "the run failed" not in markdown + page.text
    for old, new in FAILS.items():
        recorded.write("test_suite.py", TEST.replace(old, new))
        assert recorded.run("--gpuperf", ALL).ret == 1
        _, markdown, page = written(recorded)
        title = markdown.splitlines()[1]
        assert title.startswith("## gpuperf: ")
        assert title.endswith(" UNCHANGED, and the run failed (exit status 1)")
        assert title.removeprefix("## ") in page.text
