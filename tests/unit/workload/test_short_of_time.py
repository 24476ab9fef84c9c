"""An undecided workload whose budget was too short is told which would do."""

from __future__ import annotations

import pytest

from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.timing.blocks import (
    Noise,
)
from pytest_gpuperf.timing.paired_run import Pairing
from pytest_gpuperf.timing.taken_block import Block
from pytest_gpuperf.workload.explained_verdict import short_of_time

POLICY = Policy()


def undecided(r: list[float], block_s: float = 0.1, *, stopped: bool = True) -> Pairing:
    blocks = tuple(Block(r=one, order="ABBA", seconds=block_s) for one in r)
    paired = judge_blocks(r, POLICY, stopped=stopped)
    return Pairing(paired, blocks, seed=1, size=2, noise=Noise(0.001), seconds=0.2 + block_s * len(blocks))


def test_one_block_of_a_long_kernel_names_the_budget_for_as_many_as_a_clear_case_takes() -> None:
    (note,) = short_of_time(undecided([0.0]), POLICY, budget_s=1.0, before_s=0.75)
    assert note == (
        "its budget of 1 s ended after 1 block, and a verdict takes 11 or more: raise it with budget_s=4, "
        "--gpuperf-budget=4"
    )


def test_blocks_that_all_say_slower_are_told_how_many_prove_it() -> None:
    (note,) = short_of_time(undecided([0.02] * 12, 2.0), POLICY, budget_s=30.0, before_s=0.1)
    assert "ended after 12 blocks, and a verdict takes 13 or more: raise it with budget_s=57," in note
    strict = Policy(alpha=1e-9)
    (note,) = short_of_time(undecided([0.02] * 12, 2.0), strict, budget_s=30.0, before_s=0.1)
    assert "and a verdict takes 35 or more: raise it with budget_s=71," in note


def test_no_budget_is_named_that_would_be_refused() -> None:
    (note,) = short_of_time(undecided([0.0] * 2, 300.0), POLICY, budget_s=600.0, before_s=0.1)
    assert note == (
        "its budget of 600 s ended after 2 blocks, and a verdict takes 11 or more: that would be 8401 s, more than a "
        "budget may be (3600 s): give the launch less work"
    )


def test_where_no_number_of_blocks_decides_no_budget_would_do() -> None:
    few = Policy(blocks_max=6)
    assert short_of_time(undecided([0.02] * 4), few, budget_s=1.0, before_s=0.1) == ()


@pytest.mark.parametrize(
    "pairing",
    [undecided([]), undecided([0.0] * 11), undecided([0.02, -0.02] * 10), undecided([0.0], stopped=False)],
    ids=["no block", "passed", "enough blocks, undecided", "not over"],
)
def test_what_no_budget_would_have_helped_is_told_nothing(pairing: Pairing) -> None:
    assert short_of_time(pairing, POLICY, budget_s=1.0, before_s=0.75) == ()
