"""How many blocks a clear case takes: one whose blocks all agree is not left undecided for lack of time.

Going on costs no error rate, for the evidence is valid at any stopping time; it is bounded by the blocks that a proof
takes if those to come agree as well.
"""

from __future__ import annotations

import numpy as np

from pytest_gpuperf.judge.block_scores import SIGNS, EProcess, Ratios, Scores, checked, process_of
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.tail import SHARE


def blocks_to_decide(r: Ratios, policy: Policy) -> float:
    """Blocks in all after which a clear case is decided; 0 if it is not clear, infinite beyond ``blocks_max``.

    Clear are blocks that all vote for one claim and, of single launches, scores whose last one still added to it.
    """
    values = checked(r)
    if not values.size:
        return 0
    process = process_of(values.shape[1])
    slower_above, passed_below = policy.slower_above, policy.passed_below
    claims = (
        ((values > slower_above), policy.alpha * (1 - SHARE)),
        ((values < -slower_above), policy.alpha_faster),
        ((values < passed_below), policy.beta),
    )
    for votes, rate in claims:
        if _agree(votes.sum(axis=1), process):
            return process.unanimous_blocks(rate, policy.blocks_max)
    return 0


def _agree(scores: Scores, process: EProcess) -> bool:
    """Whether all blocks so far speak for one claim, and the last one still did."""
    if process is SIGNS or (scores == process.most).all():
        return bool((scores == process.most).all())
    worth = process.log_e_many(np.cumsum(scores), np.arange(1, scores.size + 1))
    return bool(worth[-1] > max(0.0, worth[-2] if worth.size > 1 else 0.0))
