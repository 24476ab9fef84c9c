"""How long blocks are taken: until they decide, and whose time is over before that has more of it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_gpuperf.judge.block_decision import Paired, judge_blocks
from pytest_gpuperf.judge.clear_case import blocks_to_decide
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.timing.rounds import Clock
from pytest_gpuperf.timing.taken_block import Block

LEANING_BUDGETS = 4.0
"""Budgets that a case may take which leans to slower and is not decided: going on costs no error rate."""


def until_decided(
    taken: Iterable[Block], policy: Policy, ends: float, clock: Clock, *, patient: bool
) -> tuple[Paired, list[Block]]:
    """Take blocks until they decide, or until ``ends`` by the clock, unless one is patient.

    Then a clear case goes on until it is decided, and one that would be left undecided and leans to slower has
    ``LEANING_BUDGETS`` times as long.
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
        if not (patient and (clear or (time_left and _leans(judge_blocks(r, policy, stopped=True, tails=tails))))):
            break
    return judge_blocks(r, policy, stopped=True, tails=tails), blocks


def _leans(paired: Paired) -> bool:
    """Whether blocks that prove nothing speak for slower rather than against it."""
    return paired.decision is Decision.INCONCLUSIVE and paired.evidence.log_e_slower > 0


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
