"""Message of a red workload: ratio with interval, changes, causes, remedy.  All on one screen."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import msgspec

from pytest_gpuperf.formatting import first_of, time_line
from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.verdict import BESIDE, NOT_CONFIRMED, Change, Judgement, Verdict
from pytest_gpuperf.report.advice_lines import INDENT, SHOWN, WIDTH, advice_lines, wrapped

SCREEN_ROWS = 24
FOOT_ROWS = 1
"""Kept for what the gate says below: how to accept the change."""
A_LINE_EACH = 4
"""Changes that take a line each; more are put one behind the other."""
NAMED = 8
ALSO = 4
"""Changes for the worse, and others, that are named before the rest is counted."""
NO_CAUSE = f"{' ' * INDENT}cause: none found; counters see more than machine code: pytest --gpuperf --gpuperf-ncu=full"
KEPT_NOTES = frozenset({"occupancy"})
"""Whose remark is kept even where a cause says the same: what limits it."""


def workload_lines(failed: Sequence[Judgement], advice: Sequence[Advice]) -> list[str]:
    """Message of one workload: as much as fits the screen, the first cause in any case."""
    short: list[str] = []
    if all(judgement.kind in BESIDE for judgement in failed):  # no cause in the machine code is one of that
        return described(failed, NAMED, ALSO, explained=False)
    for causes, named, also in ((SHOWN, NAMED, ALSO), (1, NAMED, ALSO), (1, NAMED, 0), (1, 3, 0), (1, 1, 0)):
        short = described(failed, named, also, explained=bool(advice))
        regressed = any(judgement.verdict.is_regression for judgement in failed)
        why = advice_lines(advice, causes) or ([NO_CAUSE] if regressed else [])
        verdicts = sum(not line.startswith(" ") for line in short)
        short += ["", *why] if why and verdicts > 1 else why  # they are no part of the last verdict
        if rows(short) <= SCREEN_ROWS - FOOT_ROWS:
            break
    return short


def rows(lines: Sequence[str]) -> int:
    """Rows that the lines take on a terminal: one of figures is not broken, the terminal does that."""
    return sum(max(1, math.ceil(len(line) / WIDTH)) for line in lines)


def described(failed: Sequence[Judgement], named: int, also: int, *, explained: bool) -> list[str]:
    """Each judgement under its verdict; architectures of which the same is said, and what explains times, once."""
    said: dict[tuple[str, ...], list[Judgement]] = {}
    told: set[str] = set()
    for judgement in failed:
        body = _body(_without(told, judgement), named, also, explained=explained)
        told |= {str(change) for change in judgement.changes}
        figures = "" if judgement.time is None else f"  {time_line(judgement.time)}"
        said.setdefault((judgement.verdict.value, f"({judgement.kind}){figures}", *body), []).append(judgement)
    lines: list[str] = []
    for (verdict, rest, *body), judgements in said.items():
        targets = ", ".join(judgement.target for judgement in judgements)
        lines += [f"{judgements[0].key.workload}  {verdict}  on {targets} {rest}", *body]
    return lines


def _without(told: Set[str], judgement: Judgement) -> Judgement:
    """A verdict on times without those changes of the machine code that stand above it."""
    if judgement.kind != "time":
        return judgement
    return msgspec.structs.replace(judgement, changes=tuple(c for c in judgement.changes if str(c) not in told))


def _body(judgement: Judgement, named: int, also: int, *, explained: bool) -> list[str]:
    """Changes for the worse, then the others, then the causes."""
    changes = [
        msgspec.structs.replace(change, note="") if explained and change.what not in KEPT_NOTES else change
        for change in judgement.changes
    ]
    lines = _listed("", [change for change in changes if change.direction != "neutral"], named)
    lines += _listed("also: ", [change for change in changes if change.direction == "neutral"], also)
    told = judgement.verdict in (Verdict.WORSE, Verdict.BETTER) and judgement.kind in BESIDE
    named_above = told or (judgement.kind == "static" and judgement.verdict is not Verdict.NOT_COMPARABLE)
    says_more = judgement.reason.startswith(NOT_CONFIRMED)
    reason = "" if judgement.changes and named_above and not says_more else judgement.reason
    for text in (reason, *judgement.notes):
        lines += [" " * INDENT + text] if text else []
    return lines


def _listed(head: str, changes: Sequence[Change], most: int) -> list[str]:
    if not changes or not most:
        return []
    if not head and len(changes) <= min(A_LINE_EACH, most):
        return [f"{' ' * INDENT}{change}" for change in changes]
    return wrapped(f"{head}{first_of(changes, most, ',')}", INDENT)
