"""One fresh process of the campaign: opens a GPU, confirms what its predecessor found, tries cells of its own."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.selftest.kernels import FAMILIES, Probe, compile_probes, launch_of
from pytest_gpuperf.selftest.known_slowdowns import Subject
from pytest_gpuperf.timing.paired_run import Pairing, pair

from campaign.cells import SLOW, Cell, cells_of
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.launch import Launch
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.timing.rounds import Workload, warm_up

SURROUNDINGS = 5
BUDGET_S = 5.0
"""Of one verdict, as in the gate."""
RECORDED_BLOCKS = 400
NEVER = Policy(alpha=1e-300, alpha_faster=1e-300, beta=1e-300, blocks_max=RECORDED_BLOCKS)
"""Decides nothing, so that all blocks are taken."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What a process is asked to do."""

    folder: Path
    part: str
    timer: str
    process: str
    """Unique: ``effects-cupti-3-07c4f1``, with the number of the process and of the call."""
    index: int
    """Number of this process; of ``processes``."""
    processes: int
    repeats: int
    seconds: float
    device: str = "pytest_gpuperf.device.discovery:open_device"
    predecessor: str = ""
    """Process whose SLOWER verdicts are to be confirmed."""
    only_confirm: bool = False
    only: Sequence[str] = ()
    """Kernels or cells to keep; none: all."""

    @property
    def results(self) -> Path:
        return self.folder / f"{self.process}.jsonl"


def opened(device: str) -> Any:
    """``module:function`` called."""
    module, _, function = device.partition(":")
    return getattr(importlib.import_module(module), function)()


def load_plan(folder: Path) -> dict[str, Subject]:
    """Subjects by name, as ``calibrate`` left them."""
    subjects = msgspec.json.decode((folder / "plan.json").read_bytes(), type=list[Subject])
    return {subject.name: subject for subject in subjects}


def gpu_label(uuid: str) -> str:
    """Tells GPUs apart without naming them."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:6]


def run(task: Task, clock: Callable[[], float] = time.perf_counter) -> None:
    """Everything that the task asks for, one line of results per verdict."""
    began = clock()
    device = opened(task.device)
    timer = device.timer(task.timer)
    plan = load_plan(task.folder)
    suspects = suspects_of(task.folder / f"{task.predecessor}.jsonl") if task.predecessor else []
    cells = _own_cells(task, plan)
    bench = Bench(device, timer, plan, task)
    bench.prepare([*cells, *(Cell.of(suspect) for suspect in suspects)])
    with task.results.open("a", encoding="utf-8") as file, device.lock():
        state = msgspec.to_builtins(device.state())
        write(
            file, kind="process", process=task.process, gpu=gpu_label(device.facts.uuid), model=device.facts.name,
            driver=device.facts.driver, cuda=device.facts.cuda, cupy=device.facts.cupy, timer=timer.name,
            tick_ns=timer.tick_ns, overhead_ns=timer.overhead_ns, state=state, start_s=clock() - began,
        )  # fmt: skip
        for number, suspect in enumerate(suspects):
            cell = Cell.of(suspect)
            seed = suspect["seed"] ^ 0x5EC0D0 ^ number
            write(file, **bench.verdict(cell, cell.policy.confirming(), seed, of=suspect["id"]))
        for cell, seed in _schedule(task, cells):
            if clock() - began > task.seconds:
                break
            if cell in bench.unequal:
                continue
            write(file, **bench.verdict(cell, NEVER if task.part == "blocks" else cell.policy, seed))
        write(file, kind="end", process=task.process, state=msgspec.to_builtins(device.state()), s=clock() - began)


def _own_cells(task: Task, plan: dict[str, Subject]) -> list[Cell]:
    if task.only_confirm:
        return []
    durations = {name: subject.duration_ns for name, subject in plan.items()}
    cells = cells_of(task.part, durations, task.timer, task.only)
    return cells[task.index :: task.processes] if task.part == "blocks" else cells


def _schedule(task: Task, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """Each cell ``repeats`` times, in an order of this process's own, with the seeds of the coins.

    Slow ones of equal code a quarter of that.
    """
    order = random.Random(task.process)
    passes = []
    for number in range(task.repeats):
        shuffled = [cell for cell in cells if task.part != "aa" or cell.subject not in SLOW or number % 4 == 0]
        order.shuffle(shuffled)
        passes += [(cell, order.getrandbits(48)) for cell in shuffled]
    return passes


def suspects_of(results: Path) -> list[dict[str, Any]]:
    """First verdicts of SLOWER that a process found."""
    if not results.exists():
        return []
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return [
        one for one in found if one["kind"] == "verdict" and one["decision"] == "slower" and not one["of"]
    ]  # fmt: skip


class Bench:
    """The kernels of this process, compiled and ready to be paired."""

    def __init__(self, device: Any, timer: Any, plan: dict[str, Subject], task: Task) -> None:
        self._device = device
        self._timer = timer
        self._plan = plan
        self._task = task
        self._baseline_surroundings = task.index % SURROUNDINGS
        step = 1 + task.index // SURROUNDINGS % (SURROUNDINGS - 1)
        self._candidate_surroundings = (self._baseline_surroundings + step) % SURROUNDINGS
        self._binaries: dict[Probe, KernelBinary] = {}
        self._launches: dict[str, Launch] = {}
        self._count = 0
        self.unequal: set[Cell] = set()
        """Equal kernels whose machine code is not, because of the functions around them: not tried."""

    def prepare(self, cells: Sequence[Cell]) -> None:
        """Compile what these cells need; equal kernels among other functions have the same machine code."""
        probes = [probe for cell in cells for probe in self._probes(cell)]
        self._binaries = compile_probes(probes, self._device.facts.arch, CompileCache())
        for cell in cells:
            old, new = (self._binaries[probe] for probe in self._probes(cell))
            same = old.profile.code_hash == new.profile.code_hash
            if cell.percent == 0 and not same:  # the assembler itself chose other registers among other functions
                self.unequal.add(cell)
                continue
            assert same == (cell.percent == 0), cell
            assert old.cubin != new.cubin, cell

    def verdict(self, cell: Cell, policy: Policy, seed: int, of: str = "") -> dict[str, Any]:
        """Pair the cell's two kernels until there is a decision, as a line of results.

        ``of`` is the id of the verdict that this one is to confirm.
        """
        subject = self._plan[cell.subject]
        baseline, candidate = (self._binaries[probe] for probe in self._probes(cell))
        launch = self._launch(subject)
        warm = warm_up(self._timer, Workload(launch), bound_s=0.1)
        found = pair(
            self._device, self._timer, launch, baseline, policy, seed=seed, candidate=candidate,
            duration_ns=subject.duration_ns, budget_s=60.0 if policy is NEVER else BUDGET_S,
        )  # fmt: skip
        self._count += 1
        line = {
            "kind": "verdict", "id": f"{self._task.process}/{self._count}", "process": self._task.process,
            "part": self._task.part, "timer": self._timer.name, "gpu": gpu_label(self._device.facts.uuid), "of": of,
            "subject": cell.subject, "percent": cell.percent, "delta": cell.delta, "known": subject.ratio(cell.percent),
            "seed": seed, "settled": warm.settled, **outcome(found),
        }  # fmt: skip
        if policy is NEVER:
            line["r"] = [round(value, 7) for value in found.r]
            line["orders"] = "".join(block.order[0] for block in found.blocks if not block.discarded)
        return line

    def _probes(self, cell: Cell) -> tuple[Probe, Probe]:
        subject = self._plan[cell.subject]
        return (
            subject.baseline(self._baseline_surroundings),
            subject.candidate(cell.percent, self._candidate_surroundings),
        )

    def _launch(self, subject: Subject) -> Launch:
        if subject.name not in self._launches:
            binary = self._binaries[subject.baseline(self._baseline_surroundings)]
            family = FAMILIES[subject.family]
            self._launches[subject.name] = launch_of(self._device, binary, family, subject.capacity)
        return self._launches[subject.name]


def outcome(found: Pairing) -> dict[str, Any]:
    """The figures of one pairing."""
    r = found.r
    mean = sum(r) / len(r) if r else 0.0
    variance = sum((value - mean) ** 2 for value in r) / (len(r) - 1) if len(r) > 1 else 0.0
    paired = found.paired
    return {
        "decision": paired.decision.value, "blocks": paired.blocks, "taken": len(found.blocks),
        "discarded": len(found.blocks) - len(r), "size": found.size,
        "sigma": found.noise.sigma if found.noise else None, "rho1": found.noise.rho1 if found.noise else None,
        "ratio": paired.ratio if paired.blocks else None, "interval": paired.interval,
        "mean_r": mean, "sd_r": variance**0.5, "seconds": found.seconds, "log_e": paired.evidence.log_e_slower,
    }  # fmt: skip


def write(file: TextIO, **line: Any) -> None:
    """One line of results, on disk at once: a campaign that is cut short keeps what it has."""
    file.write(json.dumps(line) + "\n")
    file.flush()
