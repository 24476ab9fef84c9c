"""Which commit made it slower: a search that pays for few verdicts, and names nobody without proof.

Commits of equal machine code have equal verdicts, and one that cannot be judged is passed over, as ``git bisect skip``
does.  A commit is named only if it is slower and the one before it is not: with others between them that could not be
judged, all of these are named as not told apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from pytest_gpuperf.errors import GpuperfError

Answer = Literal["good", "bad", "undecided"]
Code = Callable[[str], Hashable | None]
"""What a commit runs: equal for commits of equal machine code; None if it does not build."""
Ask = Callable[[str], Answer]
"""The verdict on a commit against the good end."""


@dataclasses.dataclass(frozen=True)
class Found:
    """What a search came to."""

    good: str
    """The last commit that is known not to be slower."""
    bad: str
    """The first that is known to be slower."""
    between: tuple[str, ...]
    """Commits between the two that could not be judged: any of them, or ``bad``, may be the one."""
    verdicts: int
    """How many verdicts were asked for, that on the bad end included."""

    @property
    def culprit(self) -> str | None:
        """The commit that made it slower; None if it cannot be told from others."""
        return None if self.between else self.bad


class NothingToFind(GpuperfError):
    """The bad end is not slower than the good one, or cannot be judged: there is no commit to look for."""


def search(commits: Sequence[str], code: Code, ask: Ask) -> Found:
    """The first slower of ``commits``, oldest first: the good end, what may have done it, and the bad end.

    Both ends are looked at before anything else.  Raises ``NothingToFind``.
    """
    first, last = commits[0], commits[-1]
    good = code(first)
    if good is None:
        raise NothingToFind(f"the good end {first} does not build, or its tests do not come to the workload there")
    known: dict[Hashable, Answer] = {good: "good"}

    def answer(commit: str) -> Answer:
        """What is known of the commit's code, or is found out now."""
        runs = code(commit)
        if runs is None:
            return "undecided"
        if runs not in known:
            known[runs] = ask(commit)
        return known[runs]

    end = answer(last)
    if end != "bad":
        words = "is not slower than the good one" if end == "good" else "cannot be judged against the good one"
        raise NothingToFind(f"the bad end {last} {words}")
    low, high, passed_over = 0, len(commits) - 1, set[int]()
    while open_ones := [one for one in range(low + 1, high) if one not in passed_over]:
        middle = min(open_ones, key=lambda one: abs(2 * one - low - high))
        found = answer(commits[middle])
        if found == "good":
            low = middle
        elif found == "bad":
            high = middle
        else:
            passed_over.add(middle)
    return Found(commits[low], commits[high], tuple(commits[low + 1 : high]), len(known) - 1)
