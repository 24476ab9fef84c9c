"""Verdicts in the order in which a reader has to know them, and how the terminal marks each."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.model.verdict import EvidenceKind, Judgement, Verdict

MARKUP = {
    Verdict.SLOWER: ("red", "bold"), Verdict.WORSE: ("red", "bold"),
    Verdict.INCONCLUSIVE: ("yellow",), Verdict.NOT_COMPARABLE: ("yellow",), Verdict.NOT_MEASURED: ("yellow",),
    Verdict.NEW: ("cyan",),
    Verdict.FASTER: ("green",), Verdict.BETTER: ("green",),
}  # fmt: skip
"""Markup of a row in the terminal, in the order of what a reader has to know first."""
PASSING = (Verdict.SAME, Verdict.UNCHANGED)
"""Verdicts that come last: unchanged is only what nothing changed of, on any architecture."""
RANK = {verdict: place for place, verdict in enumerate((*MARKUP, *PASSING))}
"""Rank of verdicts, by what a reader has to know first."""
NEEDS_A_WORD = (Verdict.FASTER, Verdict.BETTER, Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE, Verdict.SLOWER,
                Verdict.WORSE)  # fmt: skip
"""Verdicts that a report explains, unless pytest has just shown them as the reason of a failure."""


def rank_of(verdict: Verdict | None) -> int:
    """Place of a verdict, or of none, by what a reader has to know first."""
    return len(RANK) if verdict is None else RANK[verdict]


def worst(judgements: Iterable[Judgement], *kinds: EvidenceKind) -> Verdict | None:
    """The verdict on these kinds of evidence that a reader has to know first; None without one."""
    return min((one.verdict for one in judgements if one.kind in kinds), key=rank_of, default=None)
