"""Verdicts in the order in which a reader has to know them, their marks on a terminal, and long lists made short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

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


def shortened(text: str, width: int) -> str:
    """At most so many characters: the middle of a long name goes."""
    tail = (width - 1) // 2
    return text if len(text) <= width else text[: width - 1 - tail] + ELLIPSIS + text[len(text) - tail :]
