"""An undecided workload whose budget was too short is told which would do."""

from __future__ import annotations

import pytest

from pytest_gpuperf.judge.paired import judge_blocks
from pytest_gpuperf.judge.votes import PairedPolicy
from pytest_gpuperf.pairing import Pairing
from pytest_gpuperf.sampling.pairs import Block, Noise
from pytest_gpuperf.workload.gating import short_of_time

POLICY = PairedPolicy()


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


@pytest.mark.parametrize(
    "pairing",
    [undecided([]), undecided([0.0] * 11), undecided([0.02, -0.02] * 10), undecided([0.0], stopped=False)],
    ids=["no block", "passed", "enough blocks, undecided", "not over"],
)
def test_what_no_budget_would_have_helped_is_told_nothing(pairing: Pairing) -> None:
    assert short_of_time(pairing, POLICY, budget_s=1.0, before_s=0.75) == ()
