"""How long blocks are taken: until they decide, and whose time is over before that has more of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from pytest_gpuperf.judge.block_decision import Paired, judge_blocks
from pytest_gpuperf.judge.clear_case import blocks_to_decide
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.timing.rounds import Clock
from pytest_gpuperf.timing.taken_block import Block

LEANING_BUDGETS = 4.0
"""Budgets that a case may take which is not decided, and leans to slower or is a pair of processes: going on costs no
error rate."""

Patience = Literal["none", "leaning", "undecided"]
"""Who goes on when the time is over: nobody; what leans to slower, and clear cases; all that is not decided."""


def until_decided(
    taken: Iterable[Block], policy: Policy, ends: float, clock: Clock, patience: Patience
) -> tuple[Paired, list[Block]]:
    """Take blocks until they decide, or until ``ends`` by the clock, unless there is patience.

    Then a clear case goes on until it is decided, and one that would be left undecided and leans to slower, or any,
    has ``LEANING_BUDGETS`` times as long.
    """
    blocks: list[Block] = []
    r: list[tuple[float, ...]] = []
    paired = judge_blocks(r, policy)
    tails: tuple[tuple[float, ...], ...] = ()
    began = clock()
    for block in taken:
        blocks.append(block)
        if not block.discarded:
            r.append(block.ratios)
            tails = tails_of(blocks)
            paired = judge_blocks(r, policy, tails=tails)
        if paired.decision is not Decision.CONTINUE:
            return paired, blocks
        now = clock()
        done = now + (now - began) / len(blocks)
        if done <= ends:
            continue
        clear = len(r) < blocks_to_decide(r, policy) < math.inf
        time_left = done <= began + LEANING_BUDGETS * (ends - began)
        if patience == "none" or not (
            clear or (time_left and _wants_more(judge_blocks(r, policy, stopped=True, tails=tails), patience))
        ):
            break
    return judge_blocks(r, policy, stopped=True, tails=tails), blocks


def _wants_more(paired: Paired, patience: Patience) -> bool:
    """Of blocks that prove nothing: whether they speak for slower rather than against it, unless any will do."""
    if paired.decision is not Decision.INCONCLUSIVE:
        return False
    return patience == "undecided" or paired.evidence.log_e_slower > 0


def tails_of(blocks: Iterable[Block]) -> tuple[tuple[float, ...], ...]:
    """As ``judge_blocks`` takes them; none of sustained slots."""
    found, since = [], []
    for block in blocks:
        if block.tail is None:
            return ()
        since.append(block.tail)
        if not block.discarded:
            found.append(tuple(since))
            since = []
    return tuple(found)
