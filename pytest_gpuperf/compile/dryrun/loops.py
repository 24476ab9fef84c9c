"""Loops of a dry run: how one leaves them, and how many rounds they have.

The code tells the number of rounds where a counter moves evenly towards a bound and both are constants.  Where the
bound is an argument or comes from memory, the loop is given ``TYPICAL_ROUNDS`` steps of one: a loop that was unrolled
eight times then has an eighth of the rounds, as it should, even if that is less than one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_gpuperf.compile.dryrun.addresses import Pattern
from pytest_gpuperf.compile.dryrun.decode import Step
from pytest_gpuperf.compile.dryrun.machine import Comparison
from pytest_gpuperf.compile.dryrun.values import WORD, Value, lanes_of, signed

TYPICAL_ROUNDS = 256
"""Of a loop whose bound is an argument; all that matters is that it is several, and the same before and after."""
STRIDED_ROUNDS = 4
"""Of a loop that moves on by more than its body could have been unrolled to: by the size of a warp, a block, a grid."""
MOST_PER_INSTRUCTION = 2
"""Steps that an unrolled loop makes for each of its instructions, at most."""
DATA_ROUNDS = 16
"""Of a loop that ends when data say so."""
MOST_ROUNDS = 100_000


@dataclasses.dataclass
class Visit:
    """One instruction, executed."""

    step: Step
    share: float
    """Fraction of the lanes."""
    times: float = 1.0
    data_share: float = 1.0
    """That fraction, as far as data decide it."""
    cycles: float = 0.0
    waited: float = 0.0
    waited_for: str = ""
    pattern: Pattern | None = None
    divides: bool = False
    """It stands for a division or root with a slow path."""
    other_way: int | None = None
    """Of a conditional branch: where the way did not go."""
    comparison: Comparison | None = None
    """What the branch was decided by."""


def count_rounds(first: Sequence[Visit], second: Sequence[Visit], rounds: float) -> None:
    """Let two rounds that were walked stand for as many as there are: the second for all but the first.

    Where the two went different ways, they are taken to alternate.
    """
    alike = [visit.step.address for visit in first] == [visit.step.address for visit in second]
    shares = (min(rounds, 1), max(rounds - 1, 0)) if alike else (rounds / 2, rounds / 2)
    for visits, share in zip((first, second), shares, strict=True):
        for visit in visits:
            visit.times *= share


def exit_of(body: Sequence[Visit]) -> Visit | None:
    """The branch of a loop's body through which the way leads out; None if there is none."""
    inside = {visit.step.address for visit in body}
    ways = [visit for visit in body if visit.other_way is not None and visit.other_way not in inside]
    return ways[-1] if ways else None


def rounds_of(way_out: Visit, before: Sequence[Visit], body: int) -> float:
    """Rounds of a loop of ``body`` instructions, by what its exit compared in the second round and in the first."""
    now = way_out.comparison
    was = next((visit.comparison for visit in reversed(before) if visit.step.address == way_out.step.address), None)
    if now is None or was is None:
        return DATA_ROUNDS
    left, right = _move(was.left, now.left), _move(was.right, now.right)
    step = left - right if left is not None and right is not None else left or right
    if not step:
        return DATA_ROUNDS if left is None or right is None else TYPICAL_ROUNDS
    if now.left.example or now.right.example or left is None or right is None:
        return TYPICAL_ROUNDS / abs(step) if abs(step) <= MOST_PER_INSTRUCTION * body else STRIDED_ROUNDS
    rest = signed(_number(now.right) - _number(now.left) & WORD)
    return float(min(2 + max(0, math.ceil(rest / step)), MOST_ROUNDS))


def _move(was: Value, now: Value) -> int | None:
    """How far a side of the comparison moved in a round; None if nobody knows."""
    if was.bits is None or now.bits is None:
        return None
    return signed(_number(now) - _number(was) & WORD)


def _number(value: Value) -> int:
    assert value.bits is not None
    return lanes_of(value.bits)[0]
