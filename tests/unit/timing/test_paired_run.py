"""When blocks end: with the decision, with the budget, or a little later in a case that is clear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import pytest

from pytest_gpuperf.judge.block_decision import Paired
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.timing.taken_block import Block
from pytest_gpuperf.timing.until_decided import Patience, tails_of, until_decided

POLICY = Policy(alpha=2e-6)
BLOCK_S = 0.02


def taken(
    blocks: Iterable[Block], budget_blocks: int, patience: Patience = "leaning", *, begins: float = 0.0
) -> tuple[Paired, list[Block]]:
    """As of a pair whose blocks take 20 ms each, whose budget is of so many of them, and whose clock ``begins`` so."""
    now = [begins]

    def timed() -> Iterator[Block]:
        for block in blocks:
            now[0] += BLOCK_S
            yield block

    return until_decided(timed(), POLICY, begins + budget_blocks * BLOCK_S, lambda: now[0], patience)


def judged(r: Sequence[float], budget_blocks: int, patience: Patience = "leaning", *, begins: float = 0.0) -> Paired:
    """What blocks that are ``r`` and all count come to."""
    return taken((Block(r=value, order="ABBA") for value in r), budget_blocks, patience, begins=begins)[0]


def test_a_pass_that_waits_for_slower_goes_on_beyond_the_budget_while_all_blocks_say_slower() -> None:
    found = judged([0.009] * 100, budget_blocks=12)
    assert (found.decision, found.blocks) == (Decision.SLOWER, 23)


def test_a_pass_that_waits_for_slower_ends_with_the_budget_once_a_block_says_otherwise() -> None:
    """The evidence for slower is as strong as for the pass; of 2 in 11 blocks that say otherwise no end is near."""
    waiting = [0.009] * 20 + [0.004] + ([0.009] * 9 + [0.004, 0.004]) * 10
    found = judged(waiting, budget_blocks=21)
    assert (found.decision, found.blocks) == (Decision.SAME, 21)


def test_a_pass_that_is_not_proven_yet_is_finished_beyond_the_budget() -> None:
    assert judged([0.0] * 100, budget_blocks=5).decision is Decision.SAME


@pytest.mark.parametrize("budget_blocks", [1, 12, 40])
def test_an_open_case_ends_with_its_budget(budget_blocks: int) -> None:
    found = judged([0.02, -0.02] * 60, budget_blocks)
    assert found.decision is Decision.INCONCLUSIVE
    assert budget_blocks - 1 <= found.blocks <= budget_blocks + 1


LEANING = ([0.02] * 3 + [0.0]) * 100
"""Three blocks of four vote slower: proven in time, and not within a few dozen blocks."""


def test_an_open_case_that_leans_to_slower_has_four_times_its_budget() -> None:
    found = judged(LEANING, budget_blocks=31)
    assert (found.decision, found.blocks > 31) == (Decision.SLOWER, True)
    ended = judged(LEANING, budget_blocks=8)
    assert ended.decision is not Decision.SLOWER
    assert ended.blocks <= 4 * 8


def test_one_that_leans_the_other_way_has_not() -> None:
    found = judged([-0.02, 0.02, -0.02, 0.02] * 40, budget_blocks=9)
    assert found.blocks <= 10


def test_patience_with_all_that_is_undecided_is_for_either_way() -> None:
    leaning = ([0.0] * 3 + [0.02]) * 100
    assert judged(leaning, budget_blocks=20).decision is Decision.INCONCLUSIVE
    found = judged(leaning, 20, "undecided")
    assert (found.decision, 20 < found.blocks <= 80) == (Decision.SAME, True)
    open_case = judged([-0.02, 0.02, -0.02, 0.02] * 40, 9, "undecided")
    assert (open_case.decision, 27 <= open_case.blocks <= 36) == (Decision.INCONCLUSIVE, True)


def test_no_patience_ends_even_a_clear_case_with_its_budget() -> None:
    assert judged([0.009] * 100, 12, "none").blocks <= 12


def test_no_block_is_taken_beyond_the_decision() -> None:
    found, blocks = taken([Block(r=0.02, order="ABBA")] * 100, budget_blocks=90)
    assert (found.decision, len(blocks)) == (Decision.SLOWER, found.blocks)
    assert found.blocks < 90


def test_discarded_blocks_are_kept_and_decide_nothing() -> None:
    slow = Block(r=0.02, order="ABBA", discarded=True)
    found, blocks = taken([slow, slow, Block(r=0.0, order="ABBA")] * 40, budget_blocks=110)
    assert (found.decision, len(blocks)) == (Decision.SAME, 3 * found.blocks)


@pytest.mark.parametrize("begins", [0.0, 4096.0])
def test_time_counts_from_the_first_block_whatever_the_clock_says(begins: float) -> None:
    open_case = judged([0.02, -0.02] * 60, budget_blocks=40, begins=begins)
    leaning = judged(LEANING, budget_blocks=8, begins=begins)
    assert 39 <= open_case.blocks <= 41
    assert 31 <= leaning.blocks <= 32


def test_means_decide_too_and_those_of_discarded_blocks_count() -> None:
    rarely_slow = [Block(r=0.0, order="ABBA", tail=math.log(1.8))] * 60
    found, _ = taken(rarely_slow, budget_blocks=60)
    assert (found.decision, found.by_tail) == (Decision.SLOWER, True)
    where_discarded = [
        Block(r=0.0, order="ABBA", tail=math.log(1.8), discarded=True), Block(r=0.0, order="ABBA", tail=0.0),
    ] * 60  # fmt: skip
    ended, _ = taken(where_discarded, budget_blocks=9)
    assert ended.mean_ratio == pytest.approx((1.8 + 1.0) / 2)


def test_the_means_of_a_discarded_block_go_with_the_next_that_counts() -> None:
    seen = [Block(r=0.0, order="ABBA", tail=tail, discarded=tail < 0) for tail in (-0.1, -0.2, 0.3, 0.4, -0.5)]
    assert tails_of(seen) == ((-0.1, -0.2, 0.3), (0.4,))
    assert tails_of([*seen, Block(r=0.0, order="ABBA")]) == ()
