"""Evidence of many runs: what they prove together, what drifts, and that neither comes of nothing."""

from __future__ import annotations

import math
import random

import pytest

from pytest_gpuperf.judge.ledger_evidence import ALPHA, ALPHA_DRIFT, BETS, Vote, drift, slower_by_runs
from pytest_gpuperf.model.ledger import FIRST_BLOCKS, note_of


def votes(*percents: float, candidate: str = "code") -> list[Vote]:
    return [Vote(candidate, f"c{number}", math.log1p(percent / 100)) for number, percent in enumerate(percents)]


def test_thirteen_runs_that_agree_prove_it_and_twelve_do_not() -> None:
    assert slower_by_runs(votes(*[0.2] * 12)) is None
    found = slower_by_runs(votes(*[0.2] * 13))
    assert found is not None
    assert (found.votes, round(found.ratio, 4)) == (13, 1.002)
    assert found.log_e > -math.log(ALPHA)


def test_at_the_tolerance_nothing_is_slower() -> None:
    assert slower_by_runs(votes(*[0.05] * 500)) is None
    assert slower_by_runs([]) is None


def test_what_was_proven_stays_proven() -> None:
    assert slower_by_runs(votes(*[0.2] * 13, *[0.0] * 40)) is not None


def test_runs_of_another_candidate_do_not_count() -> None:
    assert slower_by_runs([*votes(*[0.2] * 20, candidate="old"), *votes(0.2)]) is None


def test_fair_coins_are_seldom_called_slower() -> None:
    chance = random.Random(2)
    series = 2000
    false = sum(
        slower_by_runs(votes(*(chance.choice((0.0, 0.1)) for _ in range(200)))) is not None for _ in range(series)
    )
    assert false <= 5  # the rate is at most 1 in 1,000


def history(step_percent: float, commits: int, seed: int = 0) -> list[Vote]:
    chance = random.Random(seed)
    return [
        Vote(f"code {number}", f"c{number}", math.log1p(number * step_percent / 100) + chance.gauss(0, 0.0003))
        for number in range(1, commits + 1)
    ]


def test_drift_is_found_with_its_range() -> None:
    assert drift(history(0.1, 12)) is None
    found = drift(history(0.1, 20))
    assert found is not None
    assert int(found.since[1:]) <= 3
    assert found.until == "c20"
    assert found.ratio == pytest.approx(1.017, abs=0.001)


def test_quiet_commits_and_one_candidate_do_not_drift() -> None:
    assert not any(drift(history(0.0, 60, seed)) for seed in range(50))
    assert drift(votes(*[0.5] * 50)) is None


def test_drift_that_is_over_is_not_reported_for_ever() -> None:
    mended = [Vote(f"new {number}", f"d{number}", 0.0) for number in range(10)]
    assert drift([*history(0.1, 20), *mended]) is None


def test_a_note_is_of_the_first_blocks_whenever_the_pairing_stopped() -> None:
    first = [(0.001,), (0.003,), (0.002,), (0.005,), (0.004,), (0.007,), (0.006,)]
    for rest in ([], [(0.9,)] * 4):
        note = note_of("code", [*first, *rest], 5)
        assert note is not None
        assert (note.log_ratio, note.blocks, note.seed) == (0.004, FIRST_BLOCKS + len(rest), 5)
    assert note_of("code", first[:-1], 5) is None
    assert note_of("", first, 5) is None


def test_a_note_on_long_launches_is_of_their_first_block() -> None:
    pairs = tuple(0.001 * number for number in range(16))
    note = note_of("code", [pairs, (0.9,) * 16], 5)
    assert note is not None
    assert note.log_ratio == pytest.approx(0.0075)


def wealth(slower: list[bool]) -> float:
    """The detector by its definition: over all beginnings and bets, the mean product of what each vote since pays."""
    factors = [[2 * (bet if vote else 1 - bet) for vote in slower] for bet in BETS]
    return sum(math.prod(one[start:]) for one in factors for start in range(len(slower))) / len(BETS)


def test_a_drift_is_what_the_detector_finds_by_its_definition() -> None:
    chance = random.Random(3)
    for _ in range(300):
        slower = [chance.random() < 0.85 for _ in range(chance.randint(2, 40))]
        found = drift([Vote(f"code {n}", f"c{n}", 0.01 if vote else 0.0) for n, vote in enumerate(slower)])
        assert (found is not None) == (wealth(slower) >= 1 / ALPHA_DRIFT)
        if found is not None:
            likeliest = [
                max(math.prod(2 * (bet if vote else 1 - bet) for vote in slower[start:]) for bet in BETS)
                for start in range(len(slower))
            ]
            first = likeliest.index(max(likeliest))
            assert (found.votes, found.since) == (len(slower) - first, f"c{first}")


def test_two_candidates_may_drift_and_the_ratio_is_of_the_last_seven_runs() -> None:
    older = votes(*[5.0] * 13, candidate="old")
    last = votes(0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4)
    found = drift([*older, *last])
    assert found is not None
    assert (found.ratio, found.votes) == (pytest.approx(1.004), 20)


def test_of_an_even_number_of_runs_the_ratio_lies_between_the_middle_two() -> None:
    found = slower_by_runs(votes(*[0.1] * 7, *[0.3] * 7))
    assert found is not None
    assert found.ratio == pytest.approx(math.sqrt(1.001 * 1.003))
    odd = slower_by_runs(votes(*[0.1] * 7, *[0.3] * 8))
    assert odd is not None
    assert odd.ratio == pytest.approx(1.003)
    assert slower_by_runs(votes(*[0.2] * 13, 0.1, 0.3, 0.4)).ratio == pytest.approx(1.002)  # type: ignore[union-attr]
