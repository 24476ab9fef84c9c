"""Loops of a dry run: how one leaves them, and how many rounds they have.

The code tells the number of rounds where a counter moves evenly towards a bound and both are known.  Where the bound is
an argument, the loop is given ``TYPICAL_ROUNDS`` steps of one: one unrolled eight times has an eighth of the rounds,
even if that is less than one, and the loop for its remainder none.  A counter that doubles or halves is one of a tree,
whose rounds are all walked: no two of them are alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.compile.warp_model.accesses import Visit
from pytest_gpuperf.compile.warp_model.arithmetic import WORD, Value, lanes_of, signed
from pytest_gpuperf.compile.warp_model.registers import RegisterComparison

TYPICAL_ROUNDS = 256
"""Rounds of a loop whose bound is an argument; it matters only that they are several, the same before and after."""
STRIDED_ROUNDS = 4
"""Rounds of a loop whose step exceeds any unrolling of its body: the size of a warp, a block, a grid."""
MOST_PER_INSTRUCTION = 2
"""Steps that an unrolled loop makes for each instruction of a round, at most; those of inner loops count as often as
they run, for a tile of 256 that is walked through by every thread is 256 steps."""
DATA_ROUNDS = 16
"""Rounds of a loop that ends when data say so."""
MOST_ROUNDS = 100_000
MOST_STEPS = 40
"""Rounds of a tree that are walked: a counter of 32 bits doubles no more often."""


def exit_of(body: Sequence[Visit]) -> Visit | None:
    """The branch of a loop's body through which the way leads out; None if there is none."""
    inside = {visit.step.address for visit in body}
    ways = [visit for visit in body if visit.other_way is not None and visit.other_way not in inside]
    return ways[-1] if ways else None


def rounds_of(compared: Sequence[RegisterComparison | None], body: Sequence[Visit]) -> float | None:
    """Rounds of a loop by what its exit ``compared`` in each round so far; None: walk another one, a step of a tree."""
    was, now = compared[-2:]
    if was is None or now is None:
        return DATA_ROUNDS
    left, right = _move(was.left, now.left), _move(was.right, now.right)
    step = (left or 0) - (right or 0)
    if left is None or right is None:
        return _typical_rounds(abs(step), body) if step else DATA_ROUNDS
    if not step:
        return TYPICAL_ROUNDS
    if _may_double(was, now) and len(compared) < MOST_STEPS:
        return None
    rest = signed(_number(now.right) - _number(now.left) & WORD)
    if not now.example:
        return float(min(len(compared) + max(0, math.ceil(rest / step)), MOST_ROUNDS))
    if rest * step < 0 and not (now.left.example and now.right.example):
        return 0.0  # it began at its end: the rounds that an unrolled loop leaves over of an even size
    return _typical_rounds(abs(step), body)


def _typical_rounds(step: int, body: Sequence[Visit]) -> float:
    """Rounds of a loop whose bound is an example: fewer the larger its step and its possible unrolling."""
    executed = sum(visit.times for visit in body)
    return TYPICAL_ROUNDS / step if step <= MOST_PER_INSTRUCTION * executed else STRIDED_ROUNDS


def _may_double(was: RegisterComparison, now: RegisterComparison) -> bool:
    """Whether a side doubled or halved, or more."""
    sides = ((signed(_number(one)), signed(_number(other))) for one, other in zip(was, now, strict=True))
    return any(min(pair) >= 0 and max(pair) >= max(2 * min(pair), 1) for pair in sides)


def _move(was: Value, now: Value) -> int | None:
    """Movement of a side of the comparison in a round; None if it is unknown."""
    if was.bits is None or now.bits is None:
        return None
    return signed(_number(now) - _number(was) & WORD)


def _number(value: Value) -> int:
    assert value.bits is not None
    return lanes_of(value.bits)[0]
