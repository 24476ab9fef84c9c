"""Which commit made it slower: a search that pays for few verdicts, and names nobody without proof.

A commit that cannot be judged is passed over, as ``git bisect skip`` does.  A commit is named only if it is slower and
the one before it is not: with others between them that could not be judged, all of these are named as not told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

Answer = Literal["good", "bad", "undecided"]


class Found(NamedTuple):
    """What a search came to."""

    good: str
    """The last commit that is known not to be slower."""
    between: tuple[str, ...]
    """Commits between the two that could not be judged: any of them, or ``bad``, may be the one."""
    bad: str
    """The first that is known to be slower."""


def search(commits: Sequence[str], ask: Callable[[str], Answer]) -> Found:
    """The first slower of ``commits``, oldest first, of which the first is known to be good and the last to be bad.

    ``ask`` gives the verdict on a commit against the good end.
    """
    low, high, passed_over = 0, len(commits) - 1, set[int]()
    while open_ones := [one for one in range(low + 1, high) if one not in passed_over]:
        middle = min(open_ones, key=lambda one: abs(2 * one - low - high))
        answer = ask(commits[middle])
        if answer == "good":
            low = middle
        elif answer == "bad":
            high = middle
        else:
            passed_over.add(middle)
    return Found(commits[low], tuple(commits[low + 1 : high]), commits[high])
