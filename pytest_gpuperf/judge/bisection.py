"""Which commit made it slower: a search that pays for few verdicts, and names nobody without proof.

Commits of equal machine code have equal verdicts, and one that cannot be judged is passed over, as ``git bisect skip``
does.  A commit is named only if it is slower and the one before it is not: with others between them that could not be
judged, all of these are named as not told apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

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


class NothingToFind(Exception):
    """The bad end is not slower than the good one, or cannot be judged: there is no commit to look for."""


class _Asked:
    """Codes and answers so far."""

    def __init__(self, code: Code, ask: Ask) -> None:
        self._code, self._ask = code, ask
        self._known: dict[Hashable, Answer] = {}
        self.verdicts = 0

    def know(self, commit: str, answer: Answer) -> None:
        code = self._code(commit)
        if code is not None:
            self._known[code] = answer

    def answer(self, commit: str) -> Answer:
        """What is known of the commit's code, or is found out now."""
        code = self._code(commit)
        if code is None:
            return "undecided"
        if code not in self._known:
            self.verdicts += 1
            self._known[code] = self._ask(commit)
        return self._known[code]


def search(commits: Sequence[str], code: Code, ask: Ask) -> Found:
    """The first slower of ``commits``, oldest first: the good end, what may have done it, and the bad end.

    Both ends are looked at before anything else.  Raises ``NothingToFind``.
    """
    asked = _Asked(code, ask)
    first, last = commits[0], commits[-1]
    if code(first) is None:
        raise NothingToFind(f"the good end {first} does not build, or its tests do not come to the workload there")
    asked.know(first, "good")
    end = asked.answer(last)
    if end != "bad":
        words = "is not slower than the good one" if end == "good" else "cannot be judged against the good one"
        raise NothingToFind(f"the bad end {last} {words}")
    low, high, passed_over = 0, len(commits) - 1, set[int]()
    while True:
        open_ones = [one for one in range(low + 1, high) if one not in passed_over]
        if not open_ones:
            break
        middle = min(open_ones, key=lambda one: abs(2 * one - low - high))
        answer = asked.answer(commits[middle])
        if answer == "good":
            low = middle
        elif answer == "bad":
            high = middle
        else:
            passed_over.add(middle)
    return Found(commits[low], commits[high], tuple(commits[low + 1 : high]), asked.verdicts)
