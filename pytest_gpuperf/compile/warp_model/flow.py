"""Points at which the sides of a branch meet again: immediate post-dominators of the instructions.

The hardware lets a split warp reconverge there, too.  A conditional exit counts as not taken; a call comes back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES
from pytest_gpuperf.compile.warp_model.decode import Operand, Step

END = -1
"""Place behind the last instruction, whichever that is."""


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
        address: step._replace(base="BRA")
        if step.base == "CALL" and step.target is not None and not _returns(steps, step.target)
        else step
        for address, step in steps.items()
    }


def _returns(steps: Mapping[int, Step], address: int) -> bool:
    while address in steps:
        if steps[address].guard is None and steps[address].base in ("RET", "EXIT"):
            return steps[address].base == "RET"
        address += INSTRUCTION_BYTES
    return False


def is_branch(step: Step) -> bool:
    """A jump that may lead elsewhere; ``BRA.DIV`` and ``BRA.CONV`` ask the hardware and lead to slow paths."""
    return step.base == "BRA" and not step.modifiers & {"DIV", "CONV"}


def condition_of(step: Step) -> Operand | None:
    """Of a branch: its guard, or, on later architectures, a uniform predicate among its operands."""
    if step.guard is not None:
        return step.guard
    return next((source for source in step.sources if source.kind == "predicate"), None)


def _heads(steps: Mapping[int, Step]) -> list[int]:
    """Addresses where a basic block begins."""
    heads = {min(steps, default=0)}
    for address, step in steps.items():
        if step.base in ("BRA", "EXIT", "RET", "BRX", "JMP"):
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
        if step.base in ("EXIT", "RET") and step.guard is None:
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
