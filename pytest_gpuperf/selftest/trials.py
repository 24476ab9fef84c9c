"""The positive and the negative control: verdicts, as the gate would make them, on slowdowns that are known."""

from __future__ import annotations

import dataclasses
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.judge.error_budget import Spending
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.selftest.kernels import FAMILIES, LOOP, Probe, compile_probes, launch_of
from pytest_gpuperf.selftest.known_slowdowns import Subject
from pytest_gpuperf.selftest.sass_loop import LoopCode, UnexpectedCode, loop_codes
from pytest_gpuperf.selftest.selftest_report import Control, bounds_of
from pytest_gpuperf.timing.paired_run import Pairing, pair

ALPHA_SHARE = Spending().share(20)
"""Error rate of each verdict: as on the 20th changed workload of a run."""
TRIALS: tuple[tuple[float, float], ...] = (
    (0.0, 0.005), (0.0, 0.001), (0.25, 0.005), (0.25, 0.001), (0.5, 0.0025), (1.0, 0.005), (2.0, 0.005), (5.0, 0.005),
)  # fmt: skip
"""Slowdown in percent, and the tolerance that it is judged under."""
PERCENTS = tuple(sorted({percent for percent, _ in TRIALS if percent}))

FIRST_PASS = 3
"""Times its budget that the first turn over all cells may take."""

Report = Callable[[float], None]
"""Told the share of the stage that is done, 0 to 1."""


class BrokenProbe(Exception):
    """Two modules that should hold the same machine code do not, or two that should differ are the same."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    subject: Subject
    percent: float
    tolerance: float

    @property
    def policy(self) -> Policy:
        return Policy(delta=self.tolerance, epsilon=2 * self.tolerance, alpha=ALPHA_SHARE)

    @property
    def probes(self) -> tuple[Probe, Probe]:
        """Baseline and candidate; other functions lie around the candidate."""
        return self.subject.baseline(), self.subject.candidate(self.percent)


class Controls:
    """Takes verdicts on all cells in turns, for as long as there is time."""

    def __init__(self, device: Device, timer: Timer, subjects: Sequence[Subject], seed: int) -> None:
        self._device = device
        self._timer = timer
        self._random = random.Random(seed)
        self.cells = [Cell(subject, percent, tolerance) for subject in subjects for percent, tolerance in TRIALS]
        probes = [probe for cell in self.cells for probe in cell.probes]
        self._binaries: dict[Probe, KernelBinary] = compile_probes(probes, device.facts.arch, CompileCache())
        self._launches: dict[str, Launch] = {}
        self.pairings: dict[Cell, list[Pairing]] = {cell: [] for cell in self.cells}
        for cell in self.cells:
            self._check(cell)

    def _check(self, cell: Cell) -> None:
        """Raise ``BrokenProbe`` unless equal kernels are equal to the bit and slower ones differ."""
        old, new = (self._binaries[probe] for probe in cell.probes)
        if (old.profile.code_hash == new.profile.code_hash) != (cell.percent == 0) or old.cubin == new.cubin:
            raise BrokenProbe(
                f"{cell.subject.name} +{cell.percent:g} %: the compiler's machine code is not what this test needs; "
                f"please report it with the output of gpuperf doctor --json"
            )

    def run(self, budget_s: float, report: Report, clock: Callable[[], float] = time.perf_counter) -> None:
        """Try all cells in turns for ``budget_s`` seconds, thrice that in the first.  The caller holds the lock."""
        start = clock()
        limit_s = FIRST_PASS * budget_s
        while clock() - start < limit_s:
            for cell in self._random.sample(self.cells, len(self.cells)):
                if clock() - start >= limit_s:
                    break
                self.pairings[cell].append(self._verdict(cell))
                report(min(1.0, (clock() - start) / budget_s))
            limit_s = budget_s

    def _verdict(self, cell: Cell) -> Pairing:
        baseline, candidate = (self._binaries[probe] for probe in cell.probes)
        return pair(
            self._device, self._timer, self._launch(cell.subject), baseline, cell.policy, candidate=candidate,
            seed=self._random.getrandbits(48), duration_ns=cell.subject.duration_ns,
        )  # fmt: skip

    def _launch(self, subject: Subject) -> Launch:
        if subject.name not in self._launches:
            binary, family = self._binaries[subject.baseline()], FAMILIES[subject.family]
            self._launches[subject.name] = launch_of(self._device, binary, family, subject.capacity)
        return self._launches[subject.name]

    def results(self) -> tuple[Control, ...]:
        """The figures of every cell that was tried.  Raises ``UnexpectedCode`` if loops differ otherwise."""
        loops = [probe for probe in self._binaries if probe.family is LOOP]
        counted = dict(zip(loops, loop_codes([self._binaries[probe] for probe in loops]), strict=True))
        return tuple(
            _control(cell, found, _instructions(cell, counted)) for cell, found in self.pairings.items() if found
        )


def _instructions(cell: Cell, counted: Mapping[Probe, LoopCode]) -> tuple[int, int] | None:
    """Executed per thread by baseline and candidate; None if they are no loops."""
    if cell.subject.family != LOOP.name:
        return None
    old, new = (counted[probe] for probe in cell.probes)
    if (old.outside, old.body) != (new.outside, new.body):
        raise UnexpectedCode(f"{cell.subject.name}: the compiler made another loop for another count")
    return old.executed, new.executed


def _control(cell: Cell, found: Sequence[Pairing], instructions: tuple[int, int] | None) -> Control:
    def count(*decisions: Decision) -> int:
        return sum(one.paired.decision in decisions for one in found)

    ratio, error = cell.subject.ratio(cell.percent), cell.subject.ratio_se(cell.percent)
    least, most = bounds_of(ratio, error)
    intervals = [one.paired.interval for one in found if one.paired.interval is not None]
    return Control(
        kernel=cell.subject.name, duration_ns=cell.subject.duration_ns, percent=cell.percent, ratio=ratio,
        ratio_se=error, instructions=instructions, tolerance=cell.tolerance, verdicts=len(found),
        slower=count(Decision.SLOWER), faster=count(Decision.FASTER),
        passed=count(Decision.SAME, Decision.NOT_SLOWER), inconclusive=count(Decision.INCONCLUSIVE),
        covered=sum(low <= most and least <= high for low, high in intervals), intervals=len(intervals),
        blocks=statistics.median([one.paired.blocks for one in found]),
        seconds=statistics.median([one.seconds for one in found]),
    )  # fmt: skip
