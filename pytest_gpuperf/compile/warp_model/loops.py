"""Loops of a dry run: how one leaves them, and how many rounds they have.

The code tells the number of rounds where a counter moves evenly towards a bound, or doubles or halves, and both are
constants.  Where the bound is an argument or comes from memory, the loop is given ``TYPICAL_ROUNDS`` steps of one: one
unrolled eight times has an eighth of the rounds, even if that is less than one, and the loop for its remainder none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_gpuperf.compile.warp_model.addresses import Pattern
from pytest_gpuperf.compile.warp_model.decode import Step
from pytest_gpuperf.compile.warp_model.launch_inputs import BLOCKS, THREADS
from pytest_gpuperf.compile.warp_model.registers import RegisterComparison
from pytest_gpuperf.compile.warp_model.values import WARP, WORD, Value, lanes_of, signed

TYPICAL_ROUNDS = 256
"""Rounds of a loop whose bound is an argument; it matters only that they are several, the same before and after."""
STRIDED_ROUNDS = 4
"""Rounds of a loop whose step exceeds any unrolling of its body: the size of a warp, a block, a grid."""
STRIDES = sorted((threads * blocks for threads, blocks in zip(THREADS, BLOCKS, strict=True)), reverse=True)
"""Steps of such loops by the grid along an axis, as the example of a launch has them.  A loop unrolled four times moves
on by four of them; all others are taken to cover what ``STRIDED_ROUNDS`` of a block do."""
MOST_PER_INSTRUCTION = 2
"""Steps that an unrolled loop makes for each instruction of a round, at most; those of inner loops count as often as
they run, for a tile of 256 that is walked through by every thread is 256 steps."""
DATA_ROUNDS = 16
"""Rounds of a loop that ends when data say so, by one or by a warp's width."""
MOST_ROUNDS = 100_000
LONGEST_STEP = 2_000
"""Instructions of a round that is walked as a step of a tree; there are up to 32 of them."""


@dataclasses.dataclass
class Visit:
    """One instruction, executed."""

    step: Step
    share: float
    """Fraction of the lanes."""
    times: float = 1.0
    data_share: float = 1.0
    """Part of that fraction that data decide."""
    cycles: float = 0.0
    waited: float = 0.0
    waited_for: str = ""
    pattern: Pattern | None = None
    divides: bool = False
    """It stands for a division or root with a slow path."""
    other_way: int | None = None
    """Target of a conditional branch that was not taken."""
    comparison: RegisterComparison | None = None
    """Comparison that decided the branch."""


def count_rounds(first: Sequence[Visit], second: Sequence[Visit], rounds: float) -> None:
    """Let two walked rounds stand for all, the second for all but the first; alternating if they differ."""
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


def rounds_of(way_out: Visit, before: Sequence[Visit], body: Sequence[Visit]) -> float:
    """Rounds of a loop with this ``body``, by what its exit compared in the second round and in the first."""
    now = way_out.comparison
    was = _comparison_before(way_out, before)
    if now is None or was is None:
        return DATA_ROUNDS
    if _is_rest(now):
        return 0.0
    shifted = _shifted_rounds(was, now, body)
    if shifted is not None:
        return shifted
    left, right = _move(was.left, now.left), _move(was.right, now.right)
    step = left - right if left is not None and right is not None else left or right
    if not step:
        if left is not None and right is not None:
            return TYPICAL_ROUNDS
        return _data_rounds(now, body) if _by_data(now) or not _own_step(now, body) else _reckoned_rounds(now, body)
    if now.left.example or now.right.example or left is None or right is None:
        return _typical_rounds(abs(step), body)
    rest = signed(_number(now.right) - _number(now.left) & WORD)
    return float(min(2 + max(0, math.ceil(rest / step)), MOST_ROUNDS))


def _typical_rounds(step: int, body: Sequence[Visit]) -> float:
    """Rounds of a loop whose bound is an example: fewer the larger its step and its possible unrolling."""
    executed = sum(visit.times for visit in body)
    if step <= MOST_PER_INSTRUCTION * executed:
        return TYPICAL_ROUNDS / step
    stride = next((one for one in STRIDES if step % one == 0), THREADS[0])
    return STRIDED_ROUNDS * stride / step


def _data_rounds(now: RegisterComparison, body: Sequence[Visit]) -> float:
    """Rounds of a loop that data end: fewer if its body was unrolled and adds several to the counter."""
    step = _own_step(now, body)
    if not step:
        return DATA_ROUNDS
    return DATA_ROUNDS * (1 if step % WARP else WARP) / step


def is_guess(way_out: Visit) -> bool:
    """Whether the rounds of a loop are guessed though no data are known to decide them: by what is not followed."""
    now = way_out.comparison
    return now is None or (any(side.bits is None for side in now.sides) and not _by_data(now))


def _by_data(comparison: RegisterComparison) -> bool:
    return any(side.by_data for side in comparison.sides)


def _reckoned_rounds(now: RegisterComparison, body: Sequence[Visit]) -> float:
    """Rounds of a loop whose bound is made of arguments by arithmetic that is not followed, such as a division."""
    return _typical_rounds(_own_step(now, body), body)


def _own_step(now: RegisterComparison, body: Sequence[Visit]) -> int:
    """Step per round of a counter whose start is unknown; 0 if that is not plain."""
    for step in (visit.step for visit in body):
        if step.base in ("IADD3", "UIADD3", "VIADD") and step.results and step.results[0] in now.names:
            added = [source.number for source in step.sources if source.kind == "number"]
            itself = [source for source in step.sources if source.text == step.results[0] and not source.negative]
            if len(added) == len(itself) == 1:
                return abs(signed(added[0] & WORD))
    return 0


def is_step_of_tree(way_out: Visit, before: Sequence[Visit], body: Sequence[Visit]) -> bool:
    """Whether the counter doubles or halves towards a bound, both known, and has not come there yet."""
    now, was = way_out.comparison, _comparison_before(way_out, before)
    if now is None or was is None or any(side.example for side in now.sides) or len(body) > LONGEST_STEP:
        return False
    return (_shifted_rounds(was, now, body) or 0) > 2


def _comparison_before(way_out: Visit, before: Sequence[Visit]) -> RegisterComparison | None:
    """What the exit of a loop compared the last time round."""
    address = way_out.step.address
    return next((visit.comparison for visit in reversed(before) if visit.step.address == address), None)


def _shifted_rounds(was: RegisterComparison, now: RegisterComparison, body: Sequence[Visit]) -> float | None:
    """Rounds of a loop whose counter a shift doubles or halves, by its numbers, examples or not; None if none does."""
    shifted = _shifted(body)
    found = next((place for place, name in enumerate(now.names) if name in shifted), None)
    if found is None:
        return None
    counters, bound = (was.sides[found], now.sides[found]), now.sides[1 - found]
    if any(side.bits is None for side in (*counters, bound)):
        return None
    before, value, end = (signed(_number(side)) for side in (*counters, bound))
    if min(before, value) <= 0 or max(before, value) < 2 * min(before, value):
        return None
    factor, rounds = max(before, value) // min(before, value), 2
    while (value < end) if value > before else (value > max(end, 0)):
        before, value = (value, value * factor) if value > before else (value, value // factor)
        rounds += 1
    return float(rounds)


def _shifted(body: Sequence[Visit]) -> frozenset[str]:
    """Registers that hold themselves, shifted, in the next round, and those that hold their former values."""
    copied = {(source.text, visit.step.results[0]) for visit in body
              if visit.step.klass == "move" and visit.step.results for source in visit.step.sources}  # fmt: skip
    found: set[str] = set()
    for step in (visit.step for visit in body):
        if step.base in ("SHF", "USHF") or "SHL" in step.modifiers:
            for source in step.sources:
                if source.text in step.results or (step.results[0], source.text) in copied:
                    found.update((source.text, step.results[0]))
    return frozenset(found)


def _is_rest(comparison: RegisterComparison) -> bool:
    """True if the loop does the remainder of an unrolled one."""
    sides = comparison.sides
    return any(side.rest for side in sides) and all(side.rest or side.constant for side in sides)


def _move(was: Value, now: Value) -> int | None:
    """Movement of a side of the comparison in a round; None if it is unknown."""
    if was.bits is None or now.bits is None:
        return None
    return signed(_number(now) - _number(was) & WORD)


def _number(value: Value) -> int:
    assert value.bits is not None
    return lanes_of(value.bits)[0]
