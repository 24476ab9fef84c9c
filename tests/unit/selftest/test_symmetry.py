"""Whether the coin is fair, from blocks of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_gpuperf.selftest.symmetry import Symmetry, symmetry


def of_blocks(processes: list[list[float]], carry_over: float = 0.0) -> Symmetry:
    found = symmetry("k", processes, [carry_over] * sum(len(values) for values in processes))
    assert found is not None
    return found


def drawn(seed: int, shift: float = 0.0, blocks: int = 24) -> list[list[float]]:
    random = np.random.default_rng(seed)
    return [list(random.normal(shift, 0.001, blocks)) for _ in range(4)]


def test_votes_are_counted_and_neighbours_only_within_a_process() -> None:
    found = of_blocks([[0.006, 0.001, -0.002], [-0.007, -0.001]], carry_over=0.0003)
    assert (found.blocks, found.slower, found.beyond) == (5, 2, 2)
    assert (found.neighbours, found.alike) == (3, 2)
    assert found.mean == pytest.approx(-0.0006)
    assert (found.carry_over, found.carry_over_se) == (pytest.approx(0.0003), 0)


def test_a_fair_coin_leans_about_as_rarely_as_three_standard_errors_say() -> None:
    leaning = sum(of_blocks(drawn(seed)).leans for seed in range(2000))
    assert leaning <= 20  # two checks of about 0.3 % each


@pytest.mark.parametrize("sign", [1, -1])
def test_a_side_that_is_slower_because_of_where_it_lies_shows(sign: int) -> None:
    assert sum(of_blocks(drawn(seed, sign * 0.0006)).leans for seed in range(100)) >= 85


def test_votes_that_follow_each_other_show() -> None:
    """Half of them either way, in long runs."""
    found = of_blocks([[0.001] * 12 + [-0.001] * 12, [-0.001] * 12 + [0.001] * 12])
    assert (found.slower, found.blocks) == (24, 48)
    assert found.leans


def test_votes_that_alternate_show() -> None:
    assert of_blocks([[0.001, -0.001] * 12]).leans


@pytest.mark.parametrize("processes", [[], [[]], [[0.001]]])
def test_of_less_than_two_blocks_nothing_is_said(processes: list[list[float]]) -> None:
    assert symmetry("k", processes, [0.0] * sum(len(values) for values in processes)) is None


def test_one_block_in_each_process_has_no_neighbours() -> None:
    found = of_blocks([[0.001], [-0.001]])
    assert (found.neighbours, found.leans) == (0, False)
