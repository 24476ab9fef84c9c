"""Reports that are files: their order, their bounds and their markup; and no text of others is a command to anybody."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from page_tags import Page
from record_samples import report_of, static_of, time_of

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import escape_ci_commands, visible
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Advice, Change, Judgement, TimeFigures, Verdict
from pytest_gpuperf.report import files, markdown
from pytest_gpuperf.report.annotations import annotations_of
from pytest_gpuperf.report.document import Document, RunReport, document_of
from pytest_gpuperf.report.files import write_report
from pytest_gpuperf.report.markdown import CUT_OFF, MARKER, MOST_CHARACTERS, as_markdown
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
    assert "likely bank conflicts on sm_90" in document.rows[0].lines[0]
    for text in (as_markdown(document), as_page(document)):
        assert text.count("likely bank conflicts") == 2


def test_an_annotation_is_at_the_line_of_the_cause_or_of_the_test(tmp_path: Path) -> None:
    """One for each line; no name or message begins a command of its own."""
    caused = Advice(cause="bank conflicts", evidence=(), gain=0.2, file="kernels/a,b.cu", line=26)
    works = [a_workload("a", Verdict.SLOWER, reason="100 %\n::error::x"), a_workload("b", Verdict.SAME)]
    works += [msgspec.structs.replace(a_workload(name, Verdict.SLOWER), advice=(caused,)) for name in "cd"]
    found = annotations_of(a_document(*works).rows, {"test_a.py::test_b": ("test_a.py", 7)}, tmp_path, "error")
    (at_test, message), (at_cause, _) = (one.removeprefix("::").split("::", 1) for one in found)
    assert at_test.endswith("test_a.py,line=7,title=gpuperf%3A a SLOWER")
    assert "100 %25%0A" in message
    assert at_cause.endswith("kernels/a%2Cb.cu,line=26,title=gpuperf%3A c SLOWER")
    assert all("\n" not in one for one in found)


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


def test_an_older_report_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document, target = a_document(a_workload("a", Verdict.SAME)), tmp_path / "out.md"
    target.write_text("older")
    assert write_report(document, str(target)) == str(target)
    assert target.read_text() == as_markdown(document)
    assert write_report(document, str(tmp_path / "deep" / "a.json")) == str(tmp_path / "deep" / "a.json")
    problem = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(files, "write_whole", Mock(side_effect=problem))
    words = f"the report {target} could not be written (No space left on device): name another file"
    with pytest.raises(GpuperfError, match=re.escape(words)):
        write_report(document, str(target))


HOSTILE = (
    "plain", "a|b", "</code></details><script>alert(1)</script>", "```", "`|`", "**", "[x](https://example.com)",
    "<!--", "@everyone", "::error::x", "##vso[task.complete]", "\x1b[2J\u202e", "\\", "\\|", "&lt;b&gt;", "<br", "- x",
    "a\n\n# b", "</summary>", "1. x", "# x", "--- x",
)  # fmt: skip
LONG = ("x" * 5000, "|" * 300, "_" * 300)


def a_red_run(names: tuple[str, ...], times: int = 1) -> Document:
    """Workloads of these names, each slower and worse by a cause of its own figures, and one that passes."""
    works = []
    for place in range(times):
        for number, name in enumerate(names):
            key = Key(module="test_a.py", test=f"test_{place}[{name}]", workload=name)
            ratio = 1.5 + number / 100
            slower = Judgement(
                key=key, target="nvidia-h200", kind="time", verdict=Verdict.SLOWER,
                time=TimeFigures(before_ns=51_200.0, after_ns=51_200.0 * ratio, ratio=ratio, tolerance=0.005),
                reason=name,
            )  # fmt: skip
            stack = Change("stack frame", 0, 256, "bytes", "worse")
            others = Change(f"instructions: op{number}", 0, 17, "", "worse")
            worse = Judgement(key=key, target="sm_90", kind="static", verdict=Verdict.WORSE, changes=(stack, others))
            advice = Advice(cause="instruction growth", evidence=(stack,), gain=0.25, arch="sm_90")
            works.append(WorkloadEvidence(
                key=key, judgements=(slower, worse), advice=(advice,), static={"sm_90": static_of(registers=38)},
                time=time_of(51_200.0 * ratio),
            ))  # fmt: skip
    fine = Key(module="test_a.py", test="test_fine", workload=names[0])
    passed = Judgement(key=fine, target="sm_90", kind="static", verdict=Verdict.UNCHANGED)
    works.append(WorkloadEvidence(key=fine, judgements=(passed,)))
    tests = [TestEvidence(module=one.key.module, test=one.key.test, workloads=(one,)) for one in works]
    return document_of(report_of(
        *tests, task=f"gpuperf: {names[-1][:60]}", problems=(names[1],), warnings=(names[2],), branch=names[2],
    ))  # fmt: skip


def rendered(text: str) -> Page:
    return Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_leaves_its_place(name: str) -> None:
    hostile, plain = (rendered(as_markdown(a_red_run((one, one, one)))) for one in (name, "plain"))
    allowed = {"h2", "p", "ul", "li", "strong", "code", "pre", "details", "summary", "table", "thead", "tbody", "tr",
               "th", "td", "br"}  # fmt: skip
    assert set(hostile.seen) <= allowed
    assert {tag: hostile.seen.count(tag) for tag in allowed} == {tag: plain.seen.count(tag) for tag in allowed}


def test_many_hostile_names_are_whole_tables_and_whole_sections() -> None:
    text = as_markdown(a_red_run((*HOSTILE, *LONG), times=100))
    assert len(text) <= MOST_CHARACTERS
    found = rendered(text)
    assert found.seen.count("td") % 5 == 0
    assert found.seen.count("td") > 100
    assert found.seen.count("details") == found.seen.count("summary") > 5


@pytest.mark.parametrize(
    "names", [HOSTILE, (*HOSTILE, *LONG), tuple(f"test_of_a_kernel_with_a_name_{at}" for at in range(64))]
)
def test_what_is_left_of_a_comment_cut_off_is_of_use(names: tuple[str, ...]) -> None:
    head = as_markdown(a_red_run(names, times=2))[:3000]
    assert f"## gpuperf: {2 * len(names)} SLOWER, 1 UNCHANGED" in head
    worst = 51.2 * (1.5 + (len(names) - 1) / 100)
    assert re.search(rf"\| 51\.2 us -&gt; {worst:.3g} us \|", head)
    assert "stack frame 0 -&gt; 256 bytes" in head
    assert "cause: instruction growth" in head


def test_a_run_without_times_has_no_column_of_them_and_counts_the_rest_of_a_group() -> None:
    works = []
    for at in range(64):
        key = Key(module="test_a.py", test=f"test_a[{at}]", workload="w")
        worse = Judgement(key=key, target="sm_90", kind="static", verdict=Verdict.WORSE, reason="it spills")
        works.append(WorkloadEvidence(key=key, judgements=(worse,)))
    text = as_markdown(document_of(report_of(TestEvidence("test_a.py", "test_a", workloads=tuple(works)))))
    assert "| verdict | workload | registers / spilled bytes / occupancy |\n|---|---|---|\n| **WORSE** |" in text
    assert rendered(text).seen.count("td") == 3
    assert ", and 51 more." in text


STEERING = st.lists(
    st.sampled_from(["::error file=a::b", "##[group]", "##vso[task.setvariable]", "##teamcity[", "\x1b[2J", "\r", "\n",
                     "\u202e", "\u2066", "\x85", "\u2028", "\ud800", "\t", " ", "\u3000", ":", "#", "[", "\\", "x"])
    | st.text(max_size=5)
).map("".join)  # fmt: skip


def is_command(line: str) -> bool:
    """As the runners of GitHub, Azure and TeamCity look for one: the first where a line begins, the others anywhere."""
    return re.match(r"::[A-Za-z]", line.lstrip()) is not None or re.search(r"##\w*\[", line) is not None


@given(STEERING)
def test_whatever_comes_no_line_is_a_command_and_nothing_steers_the_terminal(text: str) -> None:
    said = escape_ci_commands(text)
    assert not any(map(is_command, said.splitlines()))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", said)
    assert said.count("\n") == text.count("\n")
    assert escape_ci_commands(said) == said


@pytest.mark.parametrize(("text", "shown"), [
    ("::error file=a.py::gone", r"\x3a:error file=a.py::gone"),
    ("fine\n  ::set-output name=a::b", "fine\n  \\x3a:set-output name=a::b"),
    ("\r::warning::x", r"\r::warning::x"),
    ("##[error]x", r"\x23#[error]x"),
    ("a ##vso[task.complete]x", r"a \x23#vso[task.complete]x"),
    ("\x1b[31mred\u202edeer", r"\x1b[31mred\u202edeer"),
])  # fmt: skip
def test_what_would_do_something_is_shown(text: str, shown: str) -> None:
    assert escape_ci_commands(text) == shown


@pytest.mark.parametrize(
    "text",
    ["test_x.py::test_y[a-1]", "größe [n=4]", "日本語 :: x", "cub::DeviceReduce<float>", "## heading",
     "#[x]", "a\tb",
     "::", ":: x", "👩‍💻", "%3A"],
)  # fmt: skip
def test_ordinary_names_stay_as_they_are(text: str) -> None:
    assert escape_ci_commands(text) == visible(text) == text


def test_commands_print_no_command(command: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = command("baselines", "--baselines", "/no such\n::error::folder\x1b[2J")
    assert (status, out) == (1, "")
    assert "\n\\x3a:error::folder\\x1b[2J" in err
