"""The search for the commit that made it slower: few verdicts, no innocent one named, equal code asked about once."""

from __future__ import annotations

import random
from collections.abc import Hashable

import pytest

from pytest_gpuperf.judge.bisection import Answer, NothingToFind, search

COMMITS = [f"c{number:02}" for number in range(65)]


def answers(culprit: int, undecided: set[int] = frozenset()) -> dict[str, Answer]:  # type: ignore[assignment]
    return {
        name: "undecided" if number in undecided else "bad" if number >= culprit else "good"
        for number, name in enumerate(COMMITS)
    }


@pytest.mark.parametrize("culprit", range(1, 65))
def test_each_culprit_is_found_with_seven_verdicts(culprit: int) -> None:
    found = search(COMMITS, str, answers(culprit).__getitem__)
    assert (found.culprit, found.good) == (COMMITS[culprit], COMMITS[culprit - 1])
    assert found.verdicts <= 7


def test_equal_code_is_asked_about_once() -> None:
    """Where three codes make the whole history, two verdicts tell: on the bad end, and on the one between."""
    code = {name: number // 22 for number, name in enumerate(COMMITS)}
    asked: list[str] = []

    def ask(commit: str) -> Answer:
        asked.append(commit)
        return "bad" if code[commit] >= 1 else "good"

    found = search(COMMITS, code.__getitem__, ask)
    assert found.culprit == "c22"
    assert len(asked) == found.verdicts == 2


def test_what_does_not_build_is_passed_over() -> None:
    broken = {COMMITS[number] for number in range(1, 64, 2)}
    found = search(COMMITS, lambda one: None if one in broken else one, answers(40).__getitem__)
    assert found.culprit is None
    assert (found.good, found.between, found.bad) == ("c38", ("c39",), "c40")


def test_undecided_ones_are_never_named_guilty() -> None:
    chance = random.Random(5)
    for _ in range(300):
        culprit = chance.randrange(1, 65)
        undecided = {number for number in range(1, 64) if chance.random() < 0.2}
        found = search(COMMITS, str, answers(culprit, undecided).__getitem__)
        suspects = [*found.between, found.bad]
        assert COMMITS[culprit] in suspects
        if len(suspects) == 1:
            assert found.culprit == COMMITS[culprit]


@pytest.mark.parametrize(
    ("codes", "answer", "said"),
    [
        ({"c00": None}, "bad", "the good end c00 does not build"),
        ({}, "good", "the bad end c64 is not slower"),
        ({"c64": None}, "bad", "the bad end c64 cannot be judged"),
        ({"c64": "c00"}, "bad", "the bad end c64 is not slower"),
    ],
)
def test_ends_that_are_not_good_and_bad_are_told(codes: dict[str, Hashable], answer: Answer, said: str) -> None:
    with pytest.raises(NothingToFind, match=said):
        search(COMMITS, lambda one: codes.get(one, one), lambda _: answer)
