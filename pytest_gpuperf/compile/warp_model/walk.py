"""One warp's way through a kernel: straight on, around loops, and down both sides of a branch that splits it.

A branch that splits the lanes, or that data decide, is walked on both sides, one after the other.  A loop is walked
twice: the second round shows what every further one costs, and how many there are.  One whose counter doubles or halves
is walked in all its rounds: they are the steps of a tree, and no two of them alike.  A call on a side that data decide
is the slow path of a division or a root: it is counted, not walked.

The first warp of a block represents all of them, unless the thread's index decides about its path.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Container, Sequence

from pytest_gpuperf.compile.machine_code.sass import INSTRUCTION_BYTES, Instruction
from pytest_gpuperf.compile.warp_model.accesses import ADDRESSED, Visit, accesses_of, pattern_of, rounded, sites_of
from pytest_gpuperf.compile.warp_model.arithmetic import ONE, WARP, Value
from pytest_gpuperf.compile.warp_model.clock import Clock
from pytest_gpuperf.compile.warp_model.control_flow import (
    Splits,
    condition_of,
    exit_of,
    is_branch,
    meeting_points,
    rounds_of,
    with_jumps,
)
from pytest_gpuperf.compile.warp_model.decode import Step, decode
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch, constant_words, special_registers
from pytest_gpuperf.compile.warp_model.registers import RegisterComparison, Registers, active_lanes
from pytest_gpuperf.model.evidence import Parameter
from pytest_gpuperf.model.warp_estimate import WarpEstimate

MODEL_VERSION = 28
"""Raised whenever an estimate of the same machine code changes: a latency, a rule of the walk, a rounding."""
MOST_VISITS = 100_000
"""Instructions walked before a dry run is given up, about a second: deep nests of loops and calls."""
MOST_WARPS = 7
"""Walked in addition to the first one of a block, if their paths differ; each represents those around it."""
BLOCK_VISITS = 5_000
"""Instructions walked for them, some hundredths of a second."""


@dataclasses.dataclass
class DecodedKernel:
    """A kernel's instructions, taken apart, those of the functions it calls behind its own."""

    instructions: dataclasses.InitVar[Sequence[Instruction]]
    arch: str
    parameters: Sequence[Parameter]
    parameter_base: int
    """Where the parameters begin in constant bank 0."""
    constants: bytes = b""
    """Of bank 2."""

    def __post_init__(self, instructions: Sequence[Instruction]) -> None:
        self.steps = with_jumps({line.address: decode(line) for line in instructions})
        self.meets = meeting_points(self.steps)


def dry_run(program: DecodedKernel, launch: KnownLaunch | None = None) -> WarpEstimate | None:
    """Walk one warp through a kernel, as it is launched if that is known.

    None if the way is longer than ``MOST_VISITS``: half a walk would compare with nothing.  None as well if the
    arguments of the launch are not such as the kernel takes, or the block that is walked writes nothing: it is not one
    of those that do the work.
    """
    if launch is not None and not launch.fits(program.parameters):
        return None
    first = Walk(program, launch)
    if not first.writes and not first.too_long:
        first = Walk(program, launch, flags_off=False)
    if first.too_long or (launch is not None and not first.writes):
        return None
    visits, rest = first.visits, launch.warps - 1 if launch is not None and first.warps_differ else 0
    planned = min(rest, MOST_WARPS, BLOCK_VISITS // len(visits))
    if planned:
        others = [
            Walk(program, launch, 1 + place * rest // planned, flags_off=first.flags_off) for place in range(planned)
        ]
        if any(other.too_long for other in others):
            return None
        _let_stand_for(visits, 1 / (1 + rest))
        visits = [*visits, *itertools.chain.from_iterable(other.visits for other in others)]
        _let_stand_for(visits[len(first.visits) :], rest / planned / (1 + rest))
    return _summary(visits, launch)


def _summary(visits: Sequence[Visit], launch: KnownLaunch | None) -> WarpEstimate:
    """The visits of a walk, added up."""
    executed: dict[str, float] = defaultdict(float)
    waits: dict[str, float] = defaultdict(float)
    for visit in visits:
        executed[visit.step.klass] += visit.times
        waits[visit.waited_for] += visit.times * visit.waited
    issued = sum(executed.values())
    return WarpEstimate(
        model=MODEL_VERSION,
        executed={name: rounded(count) for name, count in sorted(executed.items()) if count},
        cycles=rounded(sum(visit.times * visit.cycles for visit in visits)),
        waits={name: rounded(count) for name, count in sorted(waits.items()) if count},
        lanes=rounded(WARP * sum(visit.times * visit.share for visit in visits) / issued) if issued else WARP,
        divisions=rounded(sum(visit.times for visit in visits if visit.divides)),
        accesses=accesses_of(visits),
        launched=launch is not None,
        warps=launch.warps * math.prod(launch.grid) if launch is not None else 0,
        sites=sites_of(visits),
    )  # fmt: skip


class Walk:
    """The way of one warp of a block."""

    def __init__(
        self, program: DecodedKernel, launch: KnownLaunch | None, warp: int = 0, *, flags_off: bool = True
    ) -> None:
        """Walk to the end."""
        self.flags_off = flags_off
        self.visits: list[Visit] = []
        self.warps_differ = False
        """Whether the thread's index decided what some lanes of the warp do, as it may decide what other warps do."""
        self._program = program
        words = constant_words(program.arch, program.parameters, program.parameter_base, program.constants, launch)
        self._registers = Registers(special_registers(launch, warp), words, flags_off=flags_off)
        self._clock = Clock()
        self._arrivals: dict[tuple[int, int], list[int]] = {}
        """By head and end of a loop: the numbers of visits when the way came back.  Loops may share a head."""
        self._splits = Splits()
        self._returns: list[int] = []
        place: int | None = 0
        while place is not None and place in program.steps and len(self.visits) < MOST_VISITS:
            place = self._splits.arrive(place)
            place = self._visit(program.steps[place])

    @property
    def too_long(self) -> bool:
        return len(self.visits) >= MOST_VISITS

    @property
    def writes(self) -> bool:
        """Whether the path writes to memory."""
        return any(visit.step.klass in ("global_store", "atomic", "bulk_copy") for visit in self.visits)

    def _visit(self, step: Step) -> int | None:
        """Execute one instruction; returns the address of the next."""
        guard = self._registers.predicate(step.guard)
        self.warps_differ |= isinstance(guard.bits, tuple) and not guard.example
        visit = Visit(step, self._splits.share, self._splits.lanes.data_share, *self._clock.advance(step))
        visit.lost = self._splits.lost
        visit.caller = self._returns[-1] - INSTRUCTION_BYTES if self._returns else None
        if step.klass in ADDRESSED:
            visit.pattern = pattern_of(step, self._registers.address(step), active_lanes(guard, self._splits.mask))
        self._registers.execute(step, guard)
        self.visits.append(visit)
        if step.klass == "branch":
            return self._jump(step, guard, visit)
        if step.operation in ("I2F", "I2FP") and "RP" in step.modifiers:
            visit.divides = True  # how an integer division begins
        return step.address + INSTRUCTION_BYTES

    def _jump(self, step: Step, guard: Value, visit: Visit) -> int | None:
        """Where a branch, a call or an exit leads."""
        following = step.address + INSTRUCTION_BYTES
        if is_branch(step) and step.target is not None:
            return self._branch(step, step.target, visit, following)
        if step.operation == "CALL" and step.target is not None:
            return self._call(step.target, visit, following)
        if step.operation == "RET":
            return self._returns.pop() if self._returns else self._splits.side_ends()
        if step.operation != "EXIT":
            return following
        if step.guard is None or (guard.bits == 1 and not guard.example):
            return self._splits.side_ends()
        if isinstance(guard.bits, tuple) and not guard.example:
            self._splits.without(guard.bits)
        return following  # who leaves by data or arguments is the exception

    def _call(self, target: int, visit: Visit, following: int) -> int:
        if self._splits.lanes.by_data:
            visit.divides = True
            return following
        self._returns.append(following)
        return target

    def _branch(self, step: Step, target: int, visit: Visit, following: int) -> int | None:
        named = condition_of(step)
        condition = self._registers.predicate(named)
        visit.comparison = self._registers.comparisons.get(named.text) if named else None
        self.warps_differ |= isinstance(condition.bits, tuple) and not condition.example
        forward = target > step.address
        ends = condition.bits == 0
        if not forward and named is not None and condition.example:
            condition = ONE  # arguments are examples: the loop goes round at least twice
        if condition.bits == 0:
            visit.other_way = target
            return following
        if forward and condition.bits != 1:
            visit.other_way = target
            self._splits.split(condition, step.address, target, self._program.meets[step.address])
            return following
        visit.other_way = following if named else None
        return target if forward else self._back(step.address, target, following, ends=ends)

    def _back(self, end: int, head: int, following: int, *, ends: bool) -> int | None:
        """A jump back: the first time round once more; the second time count the other rounds and leave.

        Where each round is another step of a tree, the way goes round until the loop's own condition ``ends`` it.
        """
        arrivals = self._arrivals.setdefault((head, end), [])
        arrivals.append(len(self.visits))
        if len(arrivals) < 2:
            return self._again(head, end)
        body = self.visits[arrivals[-2] :]
        way_out = exit_of(body)
        rounds = rounds_of(self._compared(way_out.step.address, len(arrivals)), body) if way_out is not None else None
        if rounds is None and way_out is not None and not (ends and len(arrivals) > 2):
            return self._again(head, end)
        earlier = (n for n in range(arrivals[0] - 1, -1, -1) if self.visits[n].step.address == head)
        begin = next(earlier, arrivals[0])  # the first round may have begun in its middle
        walked, before_last = self.visits[begin : arrivals[-2]], len(arrivals) - 1
        del self._arrivals[head, end]
        self._forget({visit.step.address for visit in body}, head, end)
        if way_out is None:
            return following
        if rounds is not None:
            _let_stand_for(walked, min(rounds / before_last, 1))
            _let_stand_for(body, max(rounds - before_last, 0))
        return way_out.other_way

    def _compared(self, exit_address: int, rounds: int) -> list[RegisterComparison | None]:
        """What the exit of a loop compared in so many rounds; None where it was not passed."""
        found = [visit.comparison for visit in self.visits if visit.step.address == exit_address]
        return [*[None] * (rounds - len(found)), *found[-rounds:]]

    def _again(self, head: int, end: int) -> int:
        """Another round; a loop inside that was left after its first round begins anew."""
        self._forget(range(head, end + 1), head, end)
        return head

    def _forget(self, body: Container[int], head: int, end: int) -> None:
        """Loops that begin in the body of this one start again when the path reaches them; one around it may share
        its head."""
        for loop in [(inner, last) for inner, last in self._arrivals if inner in body and (inner > head or last < end)]:
            del self._arrivals[loop]


def _let_stand_for(visits: Sequence[Visit], rounds: float) -> None:
    """Count a walked round as so many."""
    for visit in visits:
        visit.times *= rounds
