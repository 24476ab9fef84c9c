"""One warp's way through a kernel: straight on, around loops, and down both sides of a branch that splits it.

A branch that splits the lanes, or that data decide, is walked on both sides, one after the other.  A loop is walked
twice: the second round shows what every further one costs, and how many there are.  One whose counter doubles or halves
is walked in all its rounds: they are the steps of a tree, and no two of them alike.  A call on a side that data decide
is the slow path of a division or a root: it is counted, not walked.

Where the warps of a known block go different ways, each is walked, or as many as there is time for.  They are taken to
go one way where the first, the second and the last of them do: each asks whether its index is within bounds, and is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Mapping, Sequence

import msgspec

from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES, Instruction
from pytest_gpuperf.compile.warp_model.addresses import MEMORY, address_of, pattern_of
from pytest_gpuperf.compile.warp_model.decode import Step, decode
from pytest_gpuperf.compile.warp_model.divergence import DATA_SHARE, Splits
from pytest_gpuperf.compile.warp_model.flow import condition_of, is_branch, meeting_points, with_jumps
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch, Surroundings
from pytest_gpuperf.compile.warp_model.loops import Visit, count_rounds, exit_of, is_guess, is_step_of_tree, rounds_of
from pytest_gpuperf.compile.warp_model.registers import Machine, active_lanes
from pytest_gpuperf.compile.warp_model.summary import summary
from pytest_gpuperf.compile.warp_model.values import Value
from pytest_gpuperf.model.evidence import Parameter
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

MOST_VISITS = 150_000
"""Instructions walked before a dry run is given up, about a second: deep nests of loops and calls."""
BLOCK_VISITS = 20_000
"""Instructions walked for the warps of a known block that differ, about a tenth of a second."""
_NONE: frozenset[int] = frozenset()


def dry_run(
    instructions: Sequence[Instruction],
    arch: str,
    parameters: Sequence[Parameter],
    parameter_base: int,
    launch: KnownLaunch | None = None,
) -> WarpEstimate | None:
    """Walk one warp through a kernel's instructions, those of the functions it calls behind its own.

    ``parameter_base`` is where the parameters begin in constant bank 0.  None if the way is longer than
    ``MOST_VISITS``: half a walk would compare with nothing.  None as well if the ``launch`` does not tell how often a
    loop goes round, or the block that is walked writes nothing: it is not one of those that do the work.
    """
    steps = with_jumps({line.address: decode(line) for line in instructions})

    @functools.cache
    def walk(warp: int, flags: frozenset[int] = _NONE) -> Walk:
        one = Walk(steps, Machine(Surroundings(arch, parameters, parameter_base, warp, flags, launch), arch))
        one.go()
        return one

    first, flags = walk(0), _NONE
    if len(first.visits) >= MOST_VISITS:
        return None
    if first.flags and (without := walk(0, first.flags)).writes:
        first, flags = without, first.flags
    others = _others(first, launch, lambda warp: walk(warp, flags))
    walks = [first, *others]
    if any(len(one.visits) >= MOST_VISITS for one in walks):
        return None
    if launch is None:
        return summary([visit for one in walks for visit in one.visits], len(walks))
    if not any(one.writes for one in walks) or any(one.guesses for one in walks):
        return None
    for visit in (visit for one in others for visit in one.visits):
        visit.times *= (launch.warps - 1) / len(others)  # each stands for those around it
    found = summary([visit for one in walks for visit in one.visits], launch.warps if others else 1)
    return msgspec.structs.replace(
        found, launched=True, warps=launch.warps * math.prod(launch.grid), accesses=_as_launched(found.accesses, launch)
    )


def _others(first: Walk, launch: KnownLaunch | None, walk: Callable[[int], Walk]) -> list[Walk]:
    """Walks of further warps: of one where nothing is known of the launch, else of as many as there is time for."""
    if not first.warps_differ:
        return []
    rest = 1 if launch is None else launch.warps - 1
    planned = min(rest, max(1, BLOCK_VISITS // len(first.visits)))
    if planned > 2:
        way = first.way
        if all(walk(warp).way == way for warp in (1, rest)):
            return []
    found: list[Walk] = []
    for place in range(planned):
        found.append(walk(1 + place * rest // planned))
        if sum(len(one.visits) for one in found) > BLOCK_VISITS:
            break  # the first one was short, and stands for none of them
    return found


def _as_launched(accesses: tuple[Access, ...], launch: KnownLaunch) -> tuple[Access, ...]:
    """Patterns of a block that is narrower than a warp hold for its lanes as they lie: no strides lead to others."""
    return accesses if launch.along_x else tuple(msgspec.structs.replace(a, strides=None) for a in accesses)


class Walk:
    """The way so far."""

    def __init__(self, steps: Mapping[int, Step], machine: Machine) -> None:
        self.visits: list[Visit] = []
        self.warps_differ = False
        """Whether the thread's index decided a branch or an exit."""
        self.guesses = False
        """Whether the rounds of a loop were guessed that a launch would have told."""
        self._steps = steps
        self._meets = meeting_points(self._steps)
        self._machine = machine
        self._arrivals: dict[tuple[int, int], list[int]] = {}
        """By head and end of a loop: the numbers of visits when the way came back.  Loops may share a head."""
        self._splits = Splits()
        self._returns: list[int] = []

    def go(self) -> None:
        """Walk to the end."""
        place: int | None = 0
        while place is not None and place in self._steps and len(self.visits) < MOST_VISITS:
            place = self._splits.arrive(place)
            place = self._visit(self._steps[place])

    @property
    def flags(self) -> frozenset[int]:
        """Arguments that the way asked for nothing but whether they are zero."""
        return frozenset(self._machine.tested - self._machine.used)

    @property
    def writes(self) -> bool:
        """Whether the way comes to anything that writes to memory."""
        return any(visit.step.klass in ("global_store", "atomic", "bulk_copy") for visit in self.visits)

    @property
    def way(self) -> list[tuple[object, ...]]:
        """What was executed, how often, by which part of the warp, and what it asked of memory."""
        return [
            (one.step.address, one.times, one.share, one.data_share, one.pattern and one.pattern._replace(words=_NONE))
            for one in self.visits
        ]

    def _visit(self, step: Step) -> int | None:
        """Execute one instruction; returns the address of the next."""
        guard = self._machine.guard_of(step)
        visit = Visit(step, self._splits.share, data_share=self._splits.data_share)
        if step.klass in MEMORY:
            lanes = active_lanes(guard, self._splits.mask)
            visit.pattern = pattern_of(step, address_of(step, self._machine.register), lanes)
            self.warps_differ |= guard.by_thread and not guard.example
        visit.cycles = self._machine.execute(step, guard)
        visit.waited, visit.waited_for = self._machine.clock.waited, self._machine.clock.waited_for
        self.visits.append(visit)
        following = step.address + INSTRUCTION_BYTES
        if is_branch(step) and step.target is not None:
            return self._branch(step, step.target, visit, following)
        if step.base == "CALL" and step.target is not None:
            return self._call(step.target, visit, following)
        if step.base == "RET":
            return self._returns.pop() if self._returns else self._splits.side_ends()
        if step.base == "EXIT":
            return self._exit(step, guard, following)
        if step.base in ("I2F", "UI2F", "I2FP") and "RP" in step.modifiers:
            visit.divides = True  # how an integer division begins
        return following

    def _exit(self, step: Step, guard: Value, following: int) -> int | None:
        """Leave the kernel, or stay where that depends on data or arguments: those who leave are the exception."""
        self.warps_differ |= guard.by_thread and not guard.example
        if guard.bits is None and (stores := self._stored_under(step)):
            for visit in stores:
                visit.share, visit.data_share = visit.share * DATA_SHARE, visit.data_share * DATA_SHARE
            self._splits.side_left()
        if step.guard is None or (guard.bits == 1 and not guard.example):
            return self._splits.side_ends()
        if isinstance(guard.bits, tuple) and not guard.example:
            self._splits.without(guard)
        return following

    def _stored_under(self, step: Step) -> list[Visit]:
        """What was stored under the guard of an exit: who leaves then has done its part, and is no exception."""
        found = []
        for visit in reversed(self.visits[:-1]):
            if step.guard is None or step.guard.text in visit.step.flags or is_branch(visit.step):
                break
            if visit.step.klass == "global_store" and visit.step.guard == step.guard:
                found.append(visit)
        return found

    def _call(self, target: int, visit: Visit, following: int) -> int:
        if self._splits.by_data:
            visit.divides = True
            return following
        self._returns.append(following)
        return target

    def _branch(self, step: Step, target: int, visit: Visit, following: int) -> int | None:
        named = condition_of(step)
        condition = self._machine.predicate(named)
        visit.comparison = self._machine.comparisons.get(named.text) if named else None
        forward = target > step.address
        self.warps_differ |= condition.by_thread and not condition.example
        if not forward and named is not None and condition.example:
            condition = Value(1)  # arguments are examples: the loop goes round at least twice
        if condition.bits == 0 or (forward and self._is_bound(visit)):
            visit.other_way = target
            return following
        if forward and condition.bits != 1:
            visit.other_way = target
            self._splits.split(condition, target, self._meets[step.address])
            return following
        visit.other_way = following if named else None
        return target if forward else self._back(step.address, target, following)

    @staticmethod
    def _is_bound(visit: Visit) -> bool:
        """Whether a branch asks if a thread's index is within bounds that arguments set: it is taken to be.

        The branch leads around the work then; arguments are examples, and may be too small for the example of a block.
        """
        sides = visit.comparison
        if sides is None or not (sides.left.example or sides.right.example):
            return False
        return isinstance(sides.left.bits, tuple) != isinstance(sides.right.bits, tuple)

    def _back(self, end: int, head: int, following: int) -> int | None:
        """A jump back: the first time round once more; the second time count the other rounds and leave.

        Where each round is another step of a tree, the way goes round until the loop's own condition ends it.
        """
        arrivals = self._arrivals.setdefault((head, end), [])
        arrivals.append(len(self.visits))
        if len(arrivals) < 2:
            return self._again(head, end)
        before, body = self.visits[: arrivals[-2]], self.visits[arrivals[-2] :]
        way_out = exit_of(body)
        if way_out is not None and is_step_of_tree(way_out, before, body):
            return self._again(head, end)
        earlier = (n for n in range(arrivals[0] - 1, -1, -1) if self.visits[n].step.address == head)
        first = next(earlier, arrivals[0])  # the first round may have begun in its middle
        del self._arrivals[head, end]
        self._forget({visit.step.address for visit in body}, head, end)
        if way_out is None:
            return following
        if len(arrivals) == 2:
            self.guesses |= is_guess(way_out)
            count_rounds(self.visits[first : arrivals[0]], body, rounds_of(way_out, before, body))
        return way_out.other_way

    def _again(self, head: int, end: int) -> int:
        """Another round; a loop inside that was left after its first round begins anew."""
        self._forget(range(head, end + 1), head, end)
        return head

    def _forget(self, body: Container[int], head: int, end: int) -> None:
        """Loops that begin in the body of this one begin anew when the way comes to them; one around it may share its
        head."""
        for loop in [(inner, last) for inner, last in self._arrivals if inner in body and (inner > head or last < end)]:
            del self._arrivals[loop]
