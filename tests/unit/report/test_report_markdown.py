"""The Markdown of a red run as a reader of CommonMark and of GitHub's tables has it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from record_samples import report_of, static_of, time_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Advice, Change, Judgement, TimeFigures, Verdict
from pytest_gpuperf.report.document import Document, document_of
from pytest_gpuperf.report.markdown import MOST_CHARACTERS, as_markdown

HOSTILE = (
    "plain", "a|b", "</code></details><script>alert(1)</script>", "```", "`|`", "**", "[x](https://example.com)",
    "<!--", "@everyone", "::error::x", "##vso[task.complete]", "\x1b[2J\u202e", "\\", "\\|", "&lt;b&gt;", "<br", "- x",
    "a\n\n# b", "</summary>", "1. x", "# x", "--- x",
)  # fmt: skip
LONG = ("x" * 5000, "|" * 300, "_" * 300)
VOID = {"br", "hr"}


class Structure(HTMLParser):
    """Fails where a tag is not closed, or closed that is not open; keeps how many there were."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


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
            worse = Judgement(
                key=key, target="sm_90", kind="static", verdict=Verdict.WORSE, changes=(stack, others)
            )  # fmt: skip
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


def rendered(text: str) -> Structure:
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    found = Structure()
    found.feed(page)
    found.close()
    assert not found.open
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_leaves_its_place(name: str) -> None:
    hostile, plain = (rendered(as_markdown(a_red_run((one, one, one)))) for one in (name, "plain"))
    allowed = {"h2", "p", "ul", "li", "strong", "code", "pre", "details", "summary", "table", "thead", "tbody", "tr",
               "th", "td", "br"}  # fmt: skip
    assert set(hostile.seen) <= allowed
    assert {tag: hostile.seen.count(tag) for tag in allowed} == {tag: plain.seen.count(tag) for tag in allowed}


@pytest.mark.parametrize("times", [4, 400])
def test_many_hostile_names_are_whole_tables_and_whole_sections(times: int) -> None:
    document = a_red_run((*HOSTILE, *LONG), times=times)
    assert len(document.rows) == times * (len(HOSTILE) + len(LONG)) + 1
    text = as_markdown(document)
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
