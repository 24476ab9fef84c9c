"""Verdicts in the order in which a reader has to know them, their marks on a terminal, and long lists made short."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_gpuperf.formatting import columns, numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict

MARKUP = {
    Verdict.SLOWER: ("red", "bold"), Verdict.WORSE: ("red", "bold"),
    Verdict.INCONCLUSIVE: ("yellow",), Verdict.NOT_COMPARABLE: ("yellow",), Verdict.NOT_MEASURED: ("yellow",),
    Verdict.NEW: ("cyan",),
    Verdict.FASTER: ("green",), Verdict.BETTER: ("green",),
    Verdict.SAME: (), Verdict.UNCHANGED: (),
}  # fmt: skip
"""Marks of pytest's terminal writer by verdict; unchanged comes last: nothing changed, on any architecture."""
RANK = {verdict: place for place, verdict in enumerate(MARKUP)}
NEEDS_A_WORD = (Verdict.FASTER, Verdict.BETTER, Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE, Verdict.SLOWER,
                Verdict.WORSE)  # fmt: skip
"""Verdicts that a report explains, unless pytest has just shown them as the reason of a failure."""
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def rank_of(verdict: Verdict | None) -> int:
    """Place of a verdict, or of none, by what a reader has to know first."""
    return len(RANK) if verdict is None else RANK[verdict]


def worst(judgements: Iterable[Judgement], *kinds: EvidenceKind) -> Verdict | None:
    """The verdict on these kinds of evidence, or on any, that a reader has to know first; None without one."""
    return min((one.verdict for one in judgements if not kinds or one.kind in kinds), key=rank_of, default=None)


def counted(verdicts: Iterable[Verdict | None]) -> str:
    """``3 WORSE, 61 UNCHANGED``: those to know first come first."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one.value if one else 'not judged'}" for one in sorted(counts, key=rank_of))


def function_of(key: Key) -> str:
    """The test without its parameters: ``test_k.py::test_scale``."""
    return f"{key.module}::{key.test.partition('[')[0]}"


def named(keys: Sequence[Key]) -> str:
    """``test_k.py::test_scale[8] [scale]``; of several ``test_k.py::test_scale[…]  64 workloads``."""
    number = len(set(keys))
    if number == 1:
        return str(keys[0])
    parameters = f"[{ELLIPSIS}]" if any("[" in key.test for key in keys) else ""
    return f"{function_of(keys[0])}{parameters}  {number} workloads"


def deduplicated(lines: Iterable[tuple[str, str]], most: int = 6) -> list[str]:
    """Remarks, each with its workload, and the rest counted.

    Remarks that differ in figures alone, and in the test that their last words name, share a line.
    """
    about: dict[str, list[tuple[str, str]]] = {}
    for workload, text in lines:
        about.setdefault(re.sub(r" [\d.]+ ", " 0 ", text.rpartition(": ")[0]), []).append((workload, text))
    found = []
    for those in about.values():
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        found.append(f"{those[0][0]}{more}: {those[0][1]}")
    return capped(found, most, "remark")


def capped(lines: Sequence[str], most: int, what: str) -> list[str]:
    """As many of them, then how many more there are."""
    if len(lines) <= most + 1:
        return list(lines)
    more = " more" if most else ""
    return [*lines[:most], f"{'and ' if most else ''}{numbered(len(lines) - most, what)}{more} (-v lists all)"]


def shortened(text: str, width: int) -> str:
    """At most so many columns: the middle of a long name goes."""
    if columns(text) <= width:
        return text
    most = min(width, len(text) - 1)
    while columns(short := _without_middle(text, most)) > width:
        most -= 1
    return short


def _without_middle(text: str, most: int) -> str:
    """So many characters of it."""
    if most <= 1:
        return text[:most]
    tail = (most - 1) // 2
    return text[: most - 1 - tail] + ELLIPSIS + (text[-tail:] if tail else "")
