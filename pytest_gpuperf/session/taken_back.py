"""Red verdicts that pytest's own result does not show: a mark, a hook or an exit took the failure back.

The last word on a run's exit status is that of its verdicts, whatever came between them and pytest's count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

import pytest

from pytest_gpuperf.context.book import Book
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.session import exit_policy

NOT_COVERED = (
    "pytest's xfail covers what the test itself asserts, not what the gate finds. If the regression is expected: "
    "@pytest.mark.gpuperf(xfail='reason')"
)
NAMED = 3
UNTOLD = 13
"""Of a run that ended before its verdicts were told: ``end_of_run.EXIT_VANISHED``."""
EXIT_STATUSES = 256
"""As many the system knows: it keeps the remainder of another one, which may be that of a success."""


def fail_expected(report: pytest.TestReport, judgements: Iterable[Judgement], options: Options) -> None:
    """Let a test fail that pytest calls xfailed, for what the gate has against it."""
    if report.skipped and hasattr(report, "wasxfail") and _held_against(judgements, options, xfailed=True):
        del report.wasxfail
        report.outcome = "failed"
        report.sections.append(("gpuperf: xfail", NOT_COVERED))


def fail_hidden(book: Book, options: Options) -> str:
    """Count tests as failed whose verdicts are red and that pytest calls green.  Returns what to say; empty of none."""
    hidden = [(node, one) for node, one in _red(book, options) if book.answering_for(node).isdisjoint(book.failures)]
    for node, one in hidden:
        book.fail(node, f"{one.key.workload}  {one.verdict.value}, and pytest does not call the test failed")
    return _hidden_line([node for node, _ in hidden]) if hidden else ""


def has_red(book: Book, options: Options) -> bool:
    """Whether a verdict of the run is red, whatever has become of pytest's count of failures."""
    return any(True for _ in _red(book, options))


def _red(book: Book, options: Options) -> Iterator[tuple[str, Judgement]]:
    """Tests with verdicts that fail them and that nothing expects, each with the first of these."""
    for node, evidence in book.results.items():
        tests = book.answering_for(node)
        if any(one in book.results and book.results[one].xfail for one in tests):
            continue
        found = [*evidence.judgements, *evidence.unreached]
        held = _held_against(found, options, xfailed=not tests.isdisjoint(book.failed_as_expected))
        if held:
            yield node, held[0]


def looks_green(status: object) -> bool:
    """Whether the system takes an exit status for that of a success."""
    return not status or (isinstance(status, int) and status % EXIT_STATUSES == 0)


def last_word(status: int | None) -> int:
    """The exit status of a run that pytest calls green; ``status`` is that of its verdicts, None if it told none."""
    if status == 0:
        return 0
    found = (
        "before its verdicts were told" if status is None else f"as green, and its verdicts are not (status {status})"
    )
    remedy = "see to the test, conftest or plugin that ends it"
    print(f"gpuperf: this run ended {found}: {remedy}", file=sys.stderr, flush=True)
    return UNTOLD if status is None else status


def _hidden_line(nodes: Sequence[str]) -> str:
    return (
        f"the gate fails {numbered(len(nodes), 'test')} that pytest does not call failed: {first_of(nodes, NAMED)}"
        f". To do: see to the conftest or plugin that changes how tests end"
    )


def _held_against(judgements: Iterable[Judgement], options: Options, *, xfailed: bool) -> list[Judgement]:
    """What fails a test; NEW is nothing against one that is expected to fail, which no update records."""
    failed = exit_policy.failures(judgements, options)
    return [one for one in failed if not (xfailed and one.verdict is Verdict.NEW)]
