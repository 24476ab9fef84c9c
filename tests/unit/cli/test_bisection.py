"""The search for the commit that made it slower: few verdicts, and no innocent one named."""

from __future__ import annotations

import random

import pytest

from pytest_gpuperf.cli.bisect_command import Answer, search

COMMITS = [f"c{number:02}" for number in range(65)]


def answers(culprit: int, undecided: set[int] = frozenset()) -> dict[str, Answer]:  # type: ignore[assignment]
    return {
        name: "undecided" if number in undecided else "bad" if number >= culprit else "good"
        for number, name in enumerate(COMMITS)
    }


@pytest.mark.parametrize("culprit", range(1, 65, 7))
def test_each_culprit_is_found_with_six_verdicts(culprit: int) -> None:
    asked: list[str] = []
    known = answers(culprit)
    found = search(COMMITS, lambda one: (asked.append(one), known[one])[1])
    assert found == (COMMITS[culprit - 1], (), COMMITS[culprit])
    assert len(asked) <= 6
    assert not {COMMITS[0], COMMITS[-1]} & set(asked)


def test_what_cannot_be_judged_is_passed_over() -> None:
    found = search(COMMITS, answers(40, set(range(1, 64, 2))).__getitem__)
    assert found == ("c38", ("c39",), "c40")


def test_undecided_ones_are_never_named_guilty() -> None:
    chance = random.Random(5)
    for _ in range(300):
        culprit = chance.randrange(1, 65)
        undecided = {number for number in range(1, 64) if chance.random() < 0.2}
        found = search(COMMITS, answers(culprit, undecided).__getitem__)
        suspects = [*found.between, found.bad]
        assert COMMITS[culprit] in suspects
        if len(suspects) == 1:
            assert found.bad == COMMITS[culprit]
