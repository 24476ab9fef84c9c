"""Branches that split a warp: where their sides meet again, which lanes are on the way, and where the other ones wait.

The sides meet at the immediate post-dominator of the branch, where the hardware lets a split warp reconverge, too.  A
conditional exit counts as not taken; a call comes back.  The lanes that do not branch go on to where both sides meet,
then the others follow; from there all go on together.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES
from pytest_gpuperf.compile.warp_model.decode import Operand, Step
from pytest_gpuperf.compile.warp_model.values import WARP, Value, lanes_of

END = -1
"""Place behind the last instruction, whichever that is."""
Mask = tuple[bool, ...]
EVERYONE: Mask = (True,) * WARP
DATA_SHARE = 0.5
"""Share of the lanes on each side of a branch that data decide; all of them if there is one side only."""


def meeting_points(steps: Mapping[int, Step]) -> dict[int, int]:
    """Address of a branch to the address where its sides meet; ``END`` if they do not meet again."""
    heads = _heads(steps)
    following = {head: _successors(steps, head, heads) for head in heads}
    meets = _post_dominators(following, _postorder(following))
    branches = (address for address, step in steps.items() if is_branch(step) and step.target is not None)
    return {address: meets.get(heads[bisect_right(heads, address) - 1], END) for address in branches}


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
    if step.guard is not None:
        return step.guard
    return next(iter(step.predicates), None)


def _heads(steps: Mapping[int, Step]) -> list[int]:
    """Addresses where a basic block begins."""
    heads = {min(steps, default=0)}
    for address, step in steps.items():
        if step.operation in ("BRA", "EXIT", "RET", "BRX", "JMP"):
            heads.add(address + INSTRUCTION_BYTES)
            if is_branch(step) and step.target is not None:
                heads.add(step.target)
    return sorted(head for head in heads if head in steps)


def _successors(steps: Mapping[int, Step], head: int, heads: Sequence[int]) -> list[int]:
    """Blocks that may follow; ``END`` among them."""
    known = set(heads)
    address = head
    while True:
        step = steps[address]
        behind = address + INSTRUCTION_BYTES
        if is_branch(step) and step.target is not None:
            ways = [step.target, behind] if condition_of(step) else [step.target]
            return [way if way in known else END for way in ways]
        if step.operation in ("EXIT", "RET") and step.guard is None:
            return [END]
        if behind in known or behind not in steps:
            return [behind if behind in steps else END]
        address = behind


def _postorder(following: Mapping[int, Sequence[int]]) -> list[int]:
    """Blocks and ``END``, those that lead to others behind these: the reverse graph's reverse postorder."""
    backwards: dict[int, list[int]] = {END: []}
    for block, ways in following.items():
        for way in ways:
            backwards.setdefault(way, []).append(block)
    seen = {END}
    order: list[int] = []
    waiting = [(END, iter(backwards[END]))]
    while waiting:
        block, rest = waiting[-1]
        unseen = next((one for one in rest if one not in seen), None)
        if unseen is None:
            order.append(block)
            waiting.pop()
        else:
            seen.add(unseen)
            waiting.append((unseen, iter(backwards.get(unseen, []))))
    return order[::-1]


def _post_dominators(following: Mapping[int, Sequence[int]], order: Sequence[int]) -> dict[int, int]:
    """Immediate post-dominator of every block that can end (Cooper, Harvey and Kennedy 2001)."""
    rank = {block: place for place, block in enumerate(order)}
    meets = {END: END}

    def common(left: int, right: int) -> int:
        while left != right:
            while rank[left] > rank[right]:
                left = meets[left]
            while rank[right] > rank[left]:
                right = meets[right]
        return left

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            ways = [way for way in following[block] if way in meets]
            new = ways[0]
            for way in ways[1:]:
                new = common(new, way)
            if meets.get(block) != new:
                meets[block] = new
                changed = True
    return meets


@dataclasses.dataclass
class Split:
    """One branch whose sides are walked one after the other."""

    waiting: int | None
    """Start of the second side; None once it is on the way."""
    meet: int
    """Point at which the sides meet; ``END`` if they do not."""
    first: Mask | None
    """Lanes on the first side; None if data decide."""
    one_sided: bool
    """The second side is empty."""

    @property
    def lanes(self) -> Mask | None:
        """Lanes on the side that is on the way; None if data decide."""
        if self.first is None or self.waiting is not None:
            return self.first
        return tuple(not on for on in self.first)


class Splits:
    """The splits that the way is inside of."""

    def __init__(self) -> None:
        self._open: list[Split] = []
        self._here: Mask = EVERYONE
        """The lanes that did not leave the kernel."""
        self.mask: Mask = EVERYONE
        """The lanes on the way, as far as they are known."""
        self.data_share = 1.0
        """Part of them that data send here."""
        self.share = 1.0
        """Fraction of the warp that is on the way."""

    @property
    def by_data(self) -> bool:
        """True if data decide that the way leads here."""
        return any(split.first is None for split in self._open)

    def split(self, condition: Value, target: int, meet: int) -> None:
        """Open a split: lanes for which the condition holds wait at ``target``."""
        first = None if condition.bits is None else tuple(not bit for bit in lanes_of(condition.bits))
        self._open.append(Split(target, meet, first, one_sided=target == meet))
        self._count()

    def without(self, lanes: Sequence[int]) -> None:
        """Of the lanes on the way, those with a 1 leave the kernel."""
        self._here = tuple(
            here and not (on and gone) for here, on, gone in zip(self._here, self.mask, lanes, strict=True)
        )
        self._count()

    def arrive(self, place: int) -> int:
        """Next place after ``place``: the other side's beginning if this is where the sides meet."""
        while self._open and self._open[-1].meet == place:
            waiting, self._open[-1].waiting = self._open[-1].waiting, None
            if waiting is not None and waiting != place:
                self._count()
                return waiting
            self._open.pop()
            self._count()
        return place

    def side_ends(self) -> int | None:
        """The side leaves the kernel: where lanes that wait go on; None if there are none."""
        while self._open:
            waiting, self._open[-1].waiting = self._open[-1].waiting, None
            if waiting is not None:
                self._count()
                return waiting
            meet = self._open.pop().meet
            self._count()
            if meet != END:
                return meet
        return None

    def _count(self) -> None:
        self.mask, self.data_share = self._here, 1.0
        for split in self._open:
            if split.lanes is None:
                self.data_share *= 1.0 if split.one_sided else DATA_SHARE
            else:
                self.mask = tuple(a and b for a, b in zip(self.mask, split.lanes, strict=True))
        self.share = self.data_share * sum(self.mask) / WARP
