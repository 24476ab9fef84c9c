"""Several pairs of processes: slower by more than equal ones are apart, or not."""

from __future__ import annotations

import numpy as np
import pytest
from judge_samples import rounds
from scipy import stats

from pytest_gpuperf.judge.process_pairs import (
    MOST_PAIRS,
    PRIOR,
    disproven_by_pairs,
    in_pairs,
    lean_slower,
    proven_by_pairs,
)
from pytest_gpuperf.judge.two_sample import ProcessSpread, process_spread

UNKNOWN = ProcessSpread()
DELTA = 0.005


@pytest.mark.parametrize(
    ("ratios", "known", "proven"),
    [
        ([1.5], UNKNOWN, False),
        ([1.02, 1.021], UNKNOWN, True),
        ([1.02, 1.021], ProcessSpread(0.01, 4), False),
        ([1.05, 1.06], ProcessSpread(0.01, 4), True),
        ([1.02, 1.0075], UNKNOWN, False),
        ([1.01, 1.0102], UNKNOWN, False),
        ([1.01, 1.0102, 1.0098, 1.0101], UNKNOWN, True),
        ([1.01, 1.0102, 1.0098], ProcessSpread(0.0003, 4), True),
        ([1.012, 1.007, 1.03, 1.008], UNKNOWN, False),
        ([1.012, 1.007, 1.03, 1.008, 1.02], UNKNOWN, True),
        ([1.012, 1.007, 1.03, 1.008, 1.004], UNKNOWN, False),
        ([1.5, 1.3], UNKNOWN, False),
        ([1.5, 1.3, 1.6, 1.35, 1.4], UNKNOWN, True),
        ([1.004, 1.004, 1.004], ProcessSpread(0.0001, 4), False),
    ],
)
def test_what_pairs_prove(ratios: list[float], known: ProcessSpread, proven: bool) -> None:
    assert proven_by_pairs(ratios, DELTA, known) is proven


@pytest.mark.parametrize(
    ("ratios", "known", "disproven"),
    [
        ([1.0], UNKNOWN, False),
        ([1.0], ProcessSpread(0.0006, 4), True),
        ([1.003], ProcessSpread(0.0006, 4), True),
        ([1.006], ProcessSpread(0.0006, 4), False),
        ([1.0], ProcessSpread(0.006, 4), False),
        ([1.0, 1.0], UNKNOWN, True),
        ([1.004, 1.0], UNKNOWN, False),
        ([1.009, 1.0, 1.001], ProcessSpread(0.0006, 4), False),
        ([0.97], ProcessSpread(0.0006, 4), True),
    ],
)
def test_what_fresh_pairs_disprove(ratios: list[float], known: ProcessSpread, disproven: bool) -> None:
    assert disproven_by_pairs(ratios, 0.01, known) is disproven


@pytest.mark.parametrize(("processes", "most"), [(2, 4e-3), (5, 3e-3)])
def test_a_loss_as_large_as_the_detection_bound_is_seldom_disproven(processes: int, most: float) -> None:
    """One fresh pair after a first that was slower, with spreads as those of the suite's records."""
    rng = np.random.default_rng(9)
    freedom, found, spreads = processes - 1, 0, 0.0008 * np.exp(1.33 * rng.normal(size=30_000))
    for spread in spreads:
        deviation = float(spread) * float(np.sqrt(rng.chisquare(freedom) / freedom))
        ratio = float(np.exp(np.log1p(0.01) + rng.normal(0, np.sqrt(2) * spread)))
        found += disproven_by_pairs([ratio], 0.01, ProcessSpread(deviation, freedom))
    assert found / len(spreads) < most


@pytest.mark.parametrize(
    ("ratios", "leaning"), [([1.007, 1.0075], True), ([1.009, 1.0], False), ([1.012, 1.0], True), ([0.99], False)]
)
def test_fresh_pairs_lean_by_their_mean(ratios: list[float], leaning: bool) -> None:
    assert lean_slower(ratios, DELTA) is leaning


@pytest.mark.parametrize(("loss", "most"), [(0.01, 0.018), (0.02, 3e-3)])
def test_a_loss_that_one_pair_saw_is_seldom_outvoted_by_two_fresh_ones(loss: float, most: float) -> None:
    """Each below the detection bound, less what blocks are sure of, and both together within the tolerance."""
    rng = np.random.default_rng(10)
    spreads = 0.0008 * np.exp(1.33 * rng.normal(size=30_000))
    ratios = np.exp(np.log1p(loss) + rng.normal(0, np.sqrt(2), (3, len(spreads))) * spreads)
    within = np.array([not lean_slower(pair, DELTA) for pair in ratios[1:].T])
    outvoted = (ratios[0] > 1.005) & (ratios[1:] < 1.0085).all(axis=0) & within
    assert outvoted.mean() < most
    assert outvoted.mean() < (ratios[0] < 1.0085).mean(), "what a single pair says is wrong more often"


def called_slower(rng: np.random.Generator, loss: float, spread: float, processes: int) -> bool:
    """Pair after pair, as the gate asks for them; the record is of so many processes."""
    freedom = processes - 1
    deviation = spread * float(np.sqrt(rng.chisquare(freedom) / freedom)) if freedom else 0.0
    ratios: list[float] = []
    while len(ratios) < MOST_PAIRS:
        ratios.append(float(np.exp(np.log1p(loss) + rng.normal(0, np.sqrt(2) * spread))))
        if ratios[-1] <= 1 + DELTA:
            return False
        if proven_by_pairs(ratios, DELTA, ProcessSpread(deviation, freedom)):
            return True
    return False


@pytest.mark.parametrize(("processes", "most"), [(1, 2e-3), (5, 1.2e-3)])
def test_equal_processes_are_seldom_called_slower(processes: int, most: float) -> None:
    """With spreads as those of the suite's records: half below 0.08 %, a tenth above 0.44 %.

    Two pairs, each slower by more than the tolerance, are in one of 100 there.
    """
    rng = np.random.default_rng(8)
    spreads = 0.0008 * np.exp(1.33 * rng.normal(size=30_000))
    found = sum(called_slower(rng, 0.0, float(spread), processes) for spread in spreads)
    assert found / len(spreads) < most
    power = sum(called_slower(rng, 0.02, float(spread), processes) for spread in spreads[:2000])
    assert power / 2000 > 0.95


def test_the_spread_is_that_of_processes_within_a_session() -> None:
    here = rounds([[1000.0, 1000.0], [1010.0, 1010.0], [990.0, 990.0]], session="here")
    there = rounds([[2000.0, 2000.0], [2020.0, 2020.0], [1980.0, 1980.0]], session="there")
    found = process_spread([*here, *there])
    assert (found.deviation, found.freedom) == (pytest.approx(0.01, rel=0.01), 4)
    assert process_spread(here[:2]) == process_spread([]) == UNKNOWN


def test_what_rounds_scatter_is_none_of_the_processes_doing() -> None:
    found = process_spread(rounds([[1000.0, 1030.0], [1030.0, 1000.0], [1000.0, 1030.0]]))
    assert (found.deviation, found.freedom) == (0.0, 2)


def test_words() -> None:
    assert in_pairs([1.012, 1.0305, 1.02]) == "slower in 3 pairs of processes, by 1.2 to 3.0 %"


def test_the_bound_is_that_of_the_moderated_t_test() -> None:
    """Its terms one by one: the prior, the record's processes and the pairs, each by its degrees of freedom."""
    for ratios, known in (([1.010, 1.014], ProcessSpread(0.0004, 3)), ([1.02, 1.03, 1.022], ProcessSpread(0.003, 2))):
        logs = np.log(ratios)
        of_pairs = float(logs.var(ddof=1)) / 2
        terms = [(PRIOR.freedom, PRIOR.deviation**2), (known.freedom, known.deviation**2), (len(logs) - 1, of_pairs)]
        freedom = sum(weight for weight, _ in terms)
        variance = sum(weight * one for weight, one in terms) / freedom
        bound = float(stats.t.isf(1e-3, freedom)) * float(np.sqrt(2 * variance / len(logs)))
        just_below, just_above = (
            [float(np.exp(one - logs.mean() + np.log1p(DELTA) + bound * share)) for one in logs]
            for share in (0.999, 1.001)
        )
        assert not proven_by_pairs(just_below, DELTA, known)
        assert proven_by_pairs(just_above, DELTA, known)
