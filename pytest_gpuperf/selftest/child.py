"""A child process of the self-test: the same kernels in a context of its own.  ``run_child`` starts it.

Reads a task, takes rounds of each kernel and blocks of each kernel against itself, and writes what it took.
"""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.safe_python import module_command
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.selftest.kernels import FAMILIES, compile_probes, launch_of
from pytest_gpuperf.selftest.known_slowdowns import Subject
from pytest_gpuperf.timing.paired_run import pair
from pytest_gpuperf.timing.rounds import Workload, take_rounds
from pytest_gpuperf.timing.taken_block import Block

ROUNDS_BUDGET_S = 2.0
"""Time budget of one kernel's rounds; long kernels get fewer samples."""
TIMEOUT_S = 120.0
_NEVER = 1e-300
_WORDS = 1500


class ChildFailed(Exception):
    """A child process did not do its task; the message carries its own words."""


class Task(Record, frozen=True):
    device: str
    """``module:function`` that opens it."""
    timer: TimerName
    process: int
    subjects: tuple[Subject, ...]
    rounds: int
    blocks: int
    """Blocks of each kernel against itself; 0 for none."""
    seed: int


class KernelSamples(Record, frozen=True):
    kernel: str
    rounds: tuple[Round, ...]
    r: tuple[float, ...]
    """Block values of the kernel against itself in another module, among other functions."""
    carry_over: tuple[float, ...] = ()


def open_device(name: str) -> Device:
    """The device that ``module:function`` opens."""
    module, _, function = name.partition(":")
    return cast(Device, getattr(importlib.import_module(module), function)())


def take(device: Device, timer: Timer, task: Task) -> list[KernelSamples]:
    """All kernels of the task, one after another, under the GPU's lock."""
    probes = [probe for subject in task.subjects for probe in (subject.baseline(), subject.candidate(0, task.process))]
    binaries = compile_probes(probes, device.facts.arch, CompileCache())
    taken = []
    with device.lock():
        for subject in task.subjects:
            baseline = binaries[subject.baseline()]
            launch = launch_of(device, baseline, FAMILIES[subject.family], subject.capacity)
            rounds = take_rounds(
                device, timer, Workload(launch), task.rounds, session="selftest", process=task.process,
                budget_s=ROUNDS_BUDGET_S,
            ).rounds  # fmt: skip
            blocks: list[Block] = []
            if task.blocks:
                policy = Policy(alpha=_NEVER, alpha_faster=_NEVER, beta=_NEVER, blocks_max=task.blocks)
                found = pair(
                    device, timer, launch, baseline, policy, seed=task.seed,
                    candidate=binaries[subject.candidate(0, task.process)], duration_ns=subject.duration_ns,
                )  # fmt: skip
                blocks = [block for block in found.blocks if not block.discarded]
            r, carried = tuple(block.r for block in blocks), tuple(block.carry_over for block in blocks)
            taken.append(KernelSamples(kernel=subject.name, rounds=rounds, r=r, carry_over=carried))
    return taken


def run_child(task: Task) -> list[KernelSamples]:
    """Run one task in a fresh process.  Raises ``ChildFailed``."""
    with scratch_folder("gpuperf-") as folder:
        task_file, result_file = Path(folder) / "task.json", Path(folder) / "result.json"
        task_file.write_bytes(msgspec.json.encode(task))
        command = module_command(__name__, str(task_file), str(result_file))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ChildFailed(
                f"process {task.process} of the self-test was not done after {TIMEOUT_S:g} s: is another process "
                f"holding the GPU?"
            ) from None
        if done.returncode or not result_file.exists():
            words = (done.stderr or done.stdout).strip()[-_WORDS:]
            raise ChildFailed(f"process {task.process} of the self-test ended with status {done.returncode}:\n{words}")
        return msgspec.json.decode(result_file.read_bytes(), type=list[KernelSamples])


def by_kernel(processes: Sequence[Sequence[KernelSamples]]) -> dict[str, list[KernelSamples]]:
    """Measurements of each process, by kernel."""
    found: dict[str, list[KernelSamples]] = {}
    for taken in processes:
        for one in taken:
            found.setdefault(one.kernel, []).append(one)
    return found


def main(arguments: Sequence[str]) -> int:
    task_file, result_file = (Path(argument) for argument in arguments)
    task = msgspec.json.decode(task_file.read_bytes(), type=Task)
    device = open_device(task.device)
    taken = take(device, device.timer(task.timer), task)
    result_file.write_bytes(msgspec.json.encode(taken))
    return 0
