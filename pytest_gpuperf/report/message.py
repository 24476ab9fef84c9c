"""What a red workload says: ratio with interval, what changed, the causes, the remedy.  All on one screen."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.advise.record import Advice
from pytest_gpuperf.report.advice import INDENT, SHOWN, advice_lines, wrapped
from pytest_gpuperf.report.text import time_line
from pytest_gpuperf.verdict import Change, Judgement

SCREEN_LINES = 24
FOOT_LINES = 1
"""Kept for what the gate says below: how to accept the change."""
ALSO = 4
"""Neutral changes that are named before the rest is counted."""


def workload_lines(failed: Sequence[Judgement], advice: Sequence[Advice]) -> list[str]:
    """The message of one workload: as much as fits the screen, the causes in any case."""
    budget = SCREEN_LINES - FOOT_LINES
    short: list[str] = []
    for causes, also, worse in ((SHOWN, ALSO, 8), (1, ALSO, 8), (1, 0, 8), (1, 0, 3), (1, 0, 1)):
        short = [line for judgement in failed for line in _described(judgement, also, worse)]
        short += advice_lines(advice, causes)
        if len(short) <= budget:
            break
    return short


def _described(judgement: Judgement, also: int, worse: int) -> list[str]:
    """A judgement: verdict and figures first, then what changed for the worse, then what else, then why."""
    head = f"{judgement.key.workload}  {judgement.verdict.value}  on {judgement.target} ({judgement.kind})"
    lines = [head]
    if judgement.time is not None:
        lines = wrapped(f"{head}  {time_line(judgement.time)}", 0)
    telling = [change for change in judgement.changes if change.direction != "neutral"]
    lines += _listed("", telling, worse)
    lines += _listed("also: ", [change for change in judgement.changes if change.direction == "neutral"], also)
    words = [*([] if judgement.changes and judgement.kind == "static" else [judgement.reason]), *judgement.notes]
    if judgement.time is not None and judgement.time.not_paired:
        words.insert(1, f"not paired: {judgement.time.not_paired}")
    for text in filter(None, words):
        lines += wrapped(text, INDENT)
    return lines


def _listed(head: str, changes: Sequence[Change], most: int) -> list[str]:
    if not changes or not most:
        return []
    rest = len(changes) - most
    shown = ", ".join(map(str, changes[:most])) + (f", and {rest} more" if rest > 0 else "")
    return wrapped(f"{head}{shown}", INDENT)
