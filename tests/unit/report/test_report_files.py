"""Reports that are files: their order, their bounds, and what they say once."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from record_samples import report_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Advice, Judgement, TimeFigures, Verdict
from pytest_gpuperf.report import files, markdown, render
from pytest_gpuperf.report.document import Document, RunReport, document_of
from pytest_gpuperf.report.files import NotWritten, write_report, write_reports
from pytest_gpuperf.report.markdown import CUT_OFF, MARKER, MOST_CHARACTERS, as_markdown
from pytest_gpuperf.report.order import MARKUP
from pytest_gpuperf.report.render import as_page

LETTERS = [chr(code) for code in range(0x41, 0x41 + 60)]


def a_workload(name: str, *verdicts: Verdict, reason: str = "") -> WorkloadEvidence:
    key = Key(module="test_a.py", test="test_b", workload=name)
    judgements = [
        Judgement(key=key, target="nvidia-h200", kind="time", verdict=verdict, reason=reason,
                  time=TimeFigures(ratio=1.02, interval=(1.01, 1.03), tolerance=0.005))
        for verdict in verdicts
    ]  # fmt: skip
    return WorkloadEvidence(key=key, judgements=tuple(judgements))


def a_document(*works: WorkloadEvidence) -> Document:
    test = TestEvidence(module="test_a.py", test="test_b", workloads=works)
    return document_of(report_of(test, exit_status=0))


def test_what_a_reader_has_to_know_first_comes_first() -> None:
    works = [a_workload(verdict.value, verdict) for verdict in reversed(Verdict)]
    document = a_document(*works)
    names = [row.evidence.key.workload for row in document.rows]
    assert names[:3] == ["SLOWER", "WORSE", "INCONCLUSIVE"]
    assert sorted(names[-2:]) == ["SAME", "UNCHANGED"]
    assert document.headline.startswith("1 SLOWER, 1 WORSE, 1 INCONCLUSIVE, ")
    assert sum(document.report.verdicts.values()) == len(Verdict)
    assert a_document(a_workload("a", Verdict.UNCHANGED, Verdict.SLOWER)).headline == "1 SLOWER"


def test_a_likely_cause_of_a_change_that_passed_is_told_too() -> None:
    advice = (Advice(cause="bank conflicts", evidence=(), gain=0.2, arch="sm_90"),)
    works = (a_workload("a", Verdict.SAME), msgspec.structs.replace(a_workload("b", Verdict.SAME), advice=advice))
    unjudged = msgspec.structs.replace(a_workload("c"), advice=advice)
    document = a_document(*works, unjudged)
    assert [row.evidence.key.workload for row in document.rows] == ["b", "c", "a"]
    assert "likely bank conflicts on sm_90" in document.rows[0].words[0]
    for text in (as_markdown(document), as_page(document)):
        assert text.count("likely bank conflicts") == 2


def test_what_many_have_in_common_is_said_once() -> None:
    document = a_document(*(a_workload(f"w{at}", Verdict.SLOWER, reason="as slow as that") for at in range(500)))
    text, page = as_markdown(document), as_page(document)
    assert (text.count("as slow as that"), page.count("as slow as that")) == (1, 1)
    assert page.count('as <a href="#w0">w0 of test_a.py::test_b</a>') == 499
    assert text.startswith(f"{MARKER}\n## gpuperf: 500 SLOWER\n")
    assert "and 499 more" in text[:3000]
    assert "as slow as that" in text[:3000]
    assert len(text) < 4000


def test_a_summary_is_no_longer_than_github_takes() -> None:
    works = [a_workload(f"{number}", Verdict.SLOWER, reason=letter * 2000) for number, letter in enumerate(LETTERS)]
    text = as_markdown(a_document(*works))
    assert MOST_CHARACTERS - 3000 < len(text) <= MOST_CHARACTERS
    assert text.endswith(f"{CUT_OFF}\n")
    assert text.count("| **SLOWER** |") == markdown.MOST_ROWS
    assert f"and {len(LETTERS) - markdown.MOST_ROWS} SLOWER more" in text


def test_the_commit_and_the_compiler_are_told() -> None:
    document = document_of(report_of(commit="ab" * 20, dirty=True, branch="faster_scan"))
    assert "commit `abababababab` of faster\\_scan, with changes" in as_markdown(document)
    again = document_of(msgspec.json.decode(msgspec.json.encode(document.report), type=RunReport))
    assert as_markdown(again) == as_markdown(document)


def test_names_on_a_page_stay_text() -> None:
    text = as_page(a_document(a_workload("</script><b>", Verdict.SLOWER), a_workload("b\u202e", Verdict.SAME)))
    assert "</script><b>" not in text
    assert "\u202e" not in text


def test_every_verdict_that_is_marked_in_the_terminal_has_a_colour_on_the_page() -> None:
    template = (Path(render.__file__).parent / "templates" / "report.html").read_text(encoding="utf-8")
    styled = set(re.findall(r"\.([A-Z][A-Z-]+)(?=[, ])", template))
    assert {verdict.value for verdict, marks in MARKUP.items() if marks} <= styled


def test_an_older_report_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document, target, gone = a_document(a_workload("a", Verdict.SAME)), tmp_path / "out.md", tmp_path / "gone"
    target.write_text("older")
    assert write_report(document, str(target)) == str(target)
    assert target.read_text() == as_markdown(document)
    (tmp_path / "file").write_text("")
    lost = f"the report {tmp_path}/file/a.md could not be written (File exists): name another file"
    written, problems = write_reports(document, [str(tmp_path / "file" / "a.md"), str(target), str(gone / "a.json")])
    assert (written, problems) == ([str(target), str(gone / "a.json")], [lost])
    problem = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(files, "write_whole", Mock(side_effect=problem))
    words = f"the report {target} could not be written (No space left on device): name another file"
    with pytest.raises(NotWritten, match=re.escape(words)):
        write_report(document, str(target))
