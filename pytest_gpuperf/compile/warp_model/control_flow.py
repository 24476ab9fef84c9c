"""Branches that split a warp, where their sides meet again and which lanes are on the way; and rounds of loops.

The sides meet at the immediate post-dominator of the branch, where the hardware lets a split warp reconverge, too.  A
conditional exit counts as not taken; a call comes back.  The lanes that do not branch go on to where both sides meet,
then the others follow; from there all go on together.

The code tells the number of rounds of a loop where a counter moves evenly towards a bound and both are known.  Where
the bound is an argument, the loop is given ``TYPICAL_ROUNDS`` steps of one: one unrolled eight times has an eighth of
the rounds, even if that is less than one, and the loop for its remainder none.  A counter that doubles or halves is one
of a tree, whose rounds are all walked: no two of them are alike.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES
from pytest_gpuperf.compile.warp_model.accesses import Visit
from pytest_gpuperf.compile.warp_model.arithmetic import WARP, WORD, Value, lanes_of, signed
from pytest_gpuperf.compile.warp_model.decode import Operand, Step
from pytest_gpuperf.compile.warp_model.registers import RegisterComparison

END = -1
"""Place behind the last instruction, whichever that is."""
Mask = tuple[bool, ...]
EVERYONE: Mask = (True,) * WARP
DATA_SHARE = 0.5
"""Share of the lanes on each side of a branch that data decide; all of them if there is one side only."""


def meeting_points(steps: Mapping[int, Step]) -> dict[int, int]:
    """Address of a branch to the address where its sides meet; ``END`` if they do not meet again.

    That is a target of jumps: the one that all ways from the branch to the end pass, and pass as many others behind.
    """
    targets = {step.target for step in steps.values() if step.target is not None}
    marks = {target: 1 << place for place, target in enumerate(targets)}
    ways = {address: _successors(steps[address]) for address in sorted(steps, reverse=True)}
    passed = dict.fromkeys(steps, (1 << len(marks)) - 1)
    """By address: the targets that every way to the end passes, itself included; all of them until it is known."""

    def behind(address: int) -> int:
        return functools.reduce(operator.and_, [passed.get(way, 0) for way in ways[address]])

    changed = True
    while changed:
        changed = False
        for address in ways:
            found = behind(address) | marks.get(address, 0)
            changed = changed or found != passed[address]
            passed[address] = found
    first = {passed[target]: target for target in marks if target in passed}
    branches = (address for address, step in steps.items() if is_branch(step) and step.target is not None)
    return {address: first.get(behind(address), END) for address in branches}


def _successors(step: Step) -> tuple[int, ...]:
    """Addresses of the instructions that may follow; ``END`` for none."""
    following = step.address + INSTRUCTION_BYTES
    if is_branch(step) and step.target is not None:
        return (step.target, following) if condition_of(step) else (step.target,)
    return (END,) if step.operation in ("EXIT", "RET") and step.guard is None else (following,)


def with_jumps(steps: Mapping[int, Step]) -> dict[int, Step]:
    """The instructions, with those calls as jumps that lead to a place which never returns."""
    return {
        address: step._replace(operation="BRA")
        if step.operation == "CALL" and step.target is not None and not _returns(steps, step.target)
        else step
        for address, step in steps.items()
    }


def _returns(steps: Mapping[int, Step], address: int) -> bool:
    while address in steps:
        if steps[address].guard is None and steps[address].operation in ("RET", "EXIT"):
            return steps[address].operation == "RET"
        address += INSTRUCTION_BYTES
    return False


def is_branch(step: Step) -> bool:
    """A jump that may lead elsewhere; ``BRA.DIV`` and ``BRA.CONV`` ask the hardware and lead to slow paths."""
    return step.operation == "BRA" and not step.modifiers & {"DIV", "CONV"}


def condition_of(step: Step) -> Operand | None:
    """Of a branch: its guard, or, on later architectures, a uniform predicate among its operands."""
    return step.guard or next(iter(step.predicates), None)


class Lanes(NamedTuple):
    """The part of a warp that goes one way."""

    mask: Mask = EVERYONE
    """Lanes, as far as they are known."""
    data_share: float = 1.0
    """Part of them that data send here."""
    by_data: bool = False
    """True if data decide that the way leads here."""


class Split(NamedTuple):
    """One branch whose sides are walked one after the other."""

    meet: int
    """Point at which the sides meet; ``END`` if they do not."""
    waiting: list[tuple[int, Lanes]]
    """Start and lanes of the second side; empty once it is on the way."""
    together: Lanes
    branch: int
    """Its address."""
    share: float
    """Fraction of the warp that reaches it."""


class Splits:
    """The splits that the way is inside of."""

    def __init__(self) -> None:
        self._open: list[Split] = []
        self._here: Mask = EVERYONE
        """The lanes that did not leave the kernel."""
        self._go_on(Lanes())

    def _go_on(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.mask: Mask = tuple(map(operator.and_, lanes.mask, self._here))
        """The lanes on the way, as far as they are known."""
        self.share = lanes.data_share * sum(self.mask) / WARP
        """Fraction of the warp that is on the way."""
        shares = [*(split.share for split in self._open), self.share]
        self.lost = tuple((split.branch, shares[n] - shares[n + 1]) for n, split in enumerate(self._open))
        """Of each split around: its branch, and the fraction of the warp that waits for its other side."""

    def split(self, condition: Value, branch: int, target: int, meet: int) -> None:
        """Open a split at ``branch``: lanes for which the condition holds wait at ``target``."""
        mask, share, by_data = together = self.lanes
        if condition.bits is None:
            first = second = Lanes(mask, share if target == meet else share * DATA_SHARE, by_data=True)
        else:
            taken = lanes_of(condition.bits)
            first = Lanes(tuple(on and not bit for on, bit in zip(mask, taken, strict=True)), share, by_data)
            second = Lanes(tuple(on and bool(bit) for on, bit in zip(mask, taken, strict=True)), share, by_data)
        self._open.append(Split(meet, [(target, second)], together, branch, self.share))
        self._go_on(first)

    def without(self, lanes: Sequence[int]) -> None:
        """Of the lanes on the way, those with a 1 leave the kernel."""
        exited = map(operator.and_, self.mask, map(bool, lanes))
        self._here = tuple(here and not left for here, left in zip(self._here, exited, strict=True))
        self._go_on(self.lanes)

    def arrive(self, place: int) -> int:
        """Next place after ``place``: the other side's beginning if this is where the sides meet."""
        while self._open and self._open[-1].meet == place:
            waiting = self._side_done()
            if waiting is not None and waiting != place:
                return waiting
        return place

    def side_ends(self) -> int | None:
        """The side leaves the kernel: where lanes that wait go on; None if there are none."""
        while self._open:
            meet = self._open[-1].meet
            waiting = self._side_done()
            if waiting is not None or meet != END:
                return meet if waiting is None else waiting
        return None

    def _side_done(self) -> int | None:
        """Let the second side of the innermost split follow, or both go on together: None."""
        if self._open[-1].waiting:
            place, lanes = self._open[-1].waiting.pop()
            self._go_on(lanes)
            return place
        self._go_on(self._open.pop().together)
        return None


# --- loops -----------------------------------------------------------------------------------------

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
