"""Message of a red workload: ratio with interval, changes, causes, remedy.  All on one screen of 100 columns."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterable, Sequence

import msgspec

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.formatting import first_of, time_basis, time_step
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import SECONDARY, Advice, Change, Judgement, Verdict

WIDTH, SCREEN_ROWS = 100, 24
FOOT_ROWS = 1
"""Rows for the gate's last line: how to accept the change."""
INDENT = 4
NO_BREAK = "\N{NO-BREAK SPACE}"
SHOWN = 2
"""Causes under a red verdict."""
FIGURES = 3
"""Figures of evidence per cause."""
WORTH_A_SECOND = 0.25
"""A cause of nothing that gates is shown if its gain is this part of the largest one's."""
A_LINE_EACH = 4
"""Changes that take a line each; more are put one behind the other."""
NAMED, ALSO = 8, 4
"""Changes for the worse, and others, that are named before the rest is counted."""
LEAST_GAIN = 0.1
"""A cause that would gain less is left to ``gpuperf explain``: by the machine code alone, gains are estimates."""
NO_CAUSE = f"{' ' * INDENT}cause: none found; counters see more than machine code: pytest --gpuperf --gpuperf-ncu=full"


def advice_lines(advice: Sequence[Advice], most: int = SHOWN) -> list[str]:
    """The likeliest causes, each with its evidence, gain, remedy and example.

    Causes of figures that gate are named whatever they cost, others if they are not far behind the largest.  A report
    of another version may have causes that this one does not know; they are left out.
    """
    known = [one for one in advice if one.cause in BY_KEY]
    least = WORTH_A_SECOND * max((one.gain for one in known), default=0.0)
    lines = []
    for one in [one for one in known if one.gates or one.gain >= least][:most]:
        cause, evidence = BY_KEY[one.cause], ", ".join(map(str, one.evidence[:FIGURES]))
        evidence = "; ".join(filter(None, (one.place, evidence)))
        where = f" ({one.arch})" if one.arch and not one.counted else ""
        lines += [
            *wrapped(f"cause: {cause.key}{where}: {cause.says}", INDENT),
            *wrapped(f"{evidence}; {gain_text(one)}".removeprefix("; "), INDENT + 4),
            *wrapped(f"-> {(cause.in_python if one.in_python else '') or cause.remedy}", INDENT + 4),
            *wrapped(f"example: {cause.family} (gpuperf examples)", INDENT + 4),
        ]
    return lines


def gain_text(one: Advice) -> str:
    """``gain about 40 %, by the counters``; of what gates there may be one that the estimate takes for a loss."""
    source, percent = "by the counters" if one.counted else "by the machine code", round(one.gain * 100)
    words = f"about {percent} %" if percent > 0 else "unknown" if percent < 0 else "small"
    return f"gain {words}, {source}"


def hints_of(work: WorkloadEvidence) -> list[str]:
    """A line with the likely causes in code that changed, where no verdict says that it got worse; fails nothing."""
    verdicts = {judgement.verdict for judgement in work.judgements}
    if any(verdict.is_regression for verdict in verdicts):
        return []
    result = "the verdict is open" if Verdict.INCONCLUSIVE in verdicts else "no gated metric regressed"
    likely = "; ".join(
        f"likely {one.cause} on {one.arch} ({'; '.join(filter(None, (one.place, gain_text(one))))})"
        for one in work.advice
        if one.gain >= LEAST_GAIN and not (one.counted or one.same_code or one.outweighed)
    )
    explained = f"{likely}: gpuperf explain {shlex.quote(work.key.node_id)}"
    return [f"the machine code changed, {result}; {explained}"] if likely else []


def wrapped(text: str, indent: int) -> list[str]:
    """Lines of at most ``WIDTH`` columns, the second and later ones a little further in; ``62 %`` stays together."""
    lines = textwrap.wrap(
        text.replace(" %", f"{NO_BREAK}%"), WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(NO_BREAK, " ") for line in lines]


def workload_lines(failed: Sequence[Judgement], advice: Sequence[Advice]) -> list[str]:
    """Message of one workload: as much as fits the screen, the first cause in any case."""
    short: list[str] = []
    if all(judgement.kind in SECONDARY for judgement in failed):  # no cause in the machine code is one of that
        return described(failed)
    regressed = any(judgement.may_be_intended for judgement in failed)
    for causes, named, also in ((SHOWN, NAMED, ALSO), (1, NAMED, ALSO), (1, 3, 0), (1, 1, 0)):
        short = described(failed, named, also, explained=bool(advice))
        why = advice_lines(advice, causes) or ([NO_CAUSE] if regressed else [])
        verdicts = sum(not line.startswith(" ") for line in short)
        short += ["", *why] if why and verdicts > 1 else why  # they are no part of the last verdict
        if rows(short) <= SCREEN_ROWS - FOOT_ROWS:
            break
    return short


def rows(lines: Sequence[str]) -> int:
    """Rows that the lines take on a terminal: a reason is not broken, the terminal does that."""
    return sum(max(1, math.ceil(len(line) / WIDTH)) for line in lines)


def described(
    judgements: Iterable[Judgement], named: int = NAMED, also: int = ALSO, *, explained: bool = False
) -> list[str]:
    """Each judgement under its verdict; equal text of several architectures, and of times and code, once.

    ``explained``: causes follow and replace the notes of changes, except the limiter of the occupancy.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    shown: set[str] = set()
    for one in judgements:
        changes = [change for change in one.changes if one.kind != "time" or str(change) not in shown]
        shown |= {str(change) for change in one.changes}
        if explained:
            changes = [c if c.what == "occupancy" else msgspec.structs.replace(c, note="") for c in changes]
        step, body = "", _body(one, changes, named, also)
        if one.time is not None:
            step = f"  {time_step(one.time)}".rstrip()
            body.insert(0, f"{' ' * INDENT}{time_basis(one.time)}")
        alike.setdefault((one.key.workload, one.verdict.value, f"({one.kind}){step}", *body), []).append(one.target)
    lines: list[str] = []
    for (workload, verdict, rest, *body), targets in alike.items():
        lines += [f"{workload}  {verdict}  on {', '.join(targets)} {rest}", *body]
    return lines


def _body(judgement: Judgement, changes: Sequence[Change], named: int, also: int) -> list[str]:
    """Changes for the worse, then the others, then the reason, unless the changes say it, and notes."""
    gating = sorted((one for one in changes if one.direction != "neutral"), key=lambda one: one.direction == "better")
    lines = _listed("", gating, named)
    lines += _listed("also: ", [change for change in changes if change.direction == "neutral"], also)
    by_figures = judgement.verdict in (Verdict.WORSE, Verdict.BETTER) and judgement.kind in SECONDARY
    of_code = judgement.kind == "static" and judgement.fits and judgement.verdict is not Verdict.NOT_COMPARABLE
    reason = "" if changes and (by_figures or of_code) else judgement.reason
    return [*lines, *(" " * INDENT + text for text in (reason, *judgement.notes) if text)]


def _listed(head: str, changes: Sequence[Change], most: int) -> list[str]:
    if not changes or not most:
        return []
    if not head and len(changes) <= min(A_LINE_EACH, most):
        return [f"{' ' * INDENT}{change}" for change in changes]
    return wrapped(f"{head}{first_of(changes, most, ',')}", INDENT)
