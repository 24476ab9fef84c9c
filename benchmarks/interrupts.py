"""Runs that are interrupted, ended or killed at random moments: what they leave behind.

    python benchmarks/interrupts.py [--runs 100] [--seed 1] [--at-once 2] [--mode MODE]... [--signal NAME]...
        [--output docs/results/interrupts.md]

For each of a gate, an update, a second process that confirms, counters and a comparison with a revision, SIGINT,
SIGTERM and SIGKILL come at moments that are uniform over the run's length.  Needs no GPU: the simulated one of the
tests, with the GPU's real lock.  Exit status 1 if anything is left, a status is 0 before the run's end, or a baseline
is damaged.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "plugin")]

from pytest_gpuperf.atomic_write import PART  # noqa: E402

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
PATIENCE_S = 5.0
"""For orphans to be gone and locks to be free."""
MARK = "INTERRUPTED_RUN"
"""In the environment of a run and of all that it starts."""
LOCKED = """
from pytest_gpuperf.device.lock import GpuLock

class Locked(SimulatedGpu):
    def lock(self):
        return GpuLock(self.facts.uuid).held()
"""
SLOW = """

def pytest_runtest_setup(item):
    if task_of(item.config).get("type") == "confirm":
        __import__("time").sleep(0.7)
"""
MODES = {
    "gate": ("--gpuperf",),
    "update": ("--update-baselines=all", "--gpuperf-disturbed"),
    "confirm": ("--gpuperf", "-k", "1024"),
    "count": ("--gpuperf", "--gpuperf-ncu", "-k", "1024"),
    "against": ("--gpuperf", "--gpuperf-against=HEAD"),
}


class Cell(NamedTuple):
    """What became of all runs of a mode and a signal."""

    mode: str
    name: str
    seen: Counter[str]


class Machine(NamedTuple):
    """Folders that stand for a machine's."""

    suite: Path
    temporary: Path
    locks: Path
    cache: Path

    def environment(self, mark: str) -> dict[str, str]:
        return {
            **os.environ, "CI": "", "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(self.temporary), MARK: mark,
            "GPUPERF_LOCK_DIR": str(self.locks), "GPUPERF_CACHE_DIR": str(self.cache),
            "PATH": f"{self.suite.parent / 'ncu'}{os.pathsep}{os.environ['PATH']}",
            "STAND_IN_NCU_CALLS": str(self.temporary / "calls.jsonl"),
        }  # fmt: skip


def prepare(root: Path) -> Path:
    """The suite with baselines, in a repository; returns its folder."""
    from suite_under_test import FILES, READER, SIMULATED

    suite, ncu = root / "suite", root / "ncu"
    suite.mkdir()
    ncu.mkdir()
    program = (ROOT / "tests" / "plugin" / "stand_in_ncu.py").read_text(encoding="utf-8")
    (ncu / "ncu").write_text(program.replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1), encoding="utf-8")
    (ncu / "ncu").chmod(0o755)
    conftest = SIMULATED.replace("\n\ndef work(", f"\n{LOCKED}\n\ndef work(")
    conftest = conftest.replace("return SimulatedGpu", "return Locked")
    for name, text in {
        **FILES,
        "conftest.py": conftest + READER + SLOW,
        ".gitignore": ".gpuperf\n__pycache__\n",
    }.items():
        (suite / name).write_text(text, encoding="utf-8")
    machine = machine_of(root, suite, "first")
    run(machine, MODES["update"])
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=suite, check=True)
    text = (suite / "test_suite.py").read_text(encoding="utf-8")
    (suite / "test_suite.py").write_text(text.replace("-DSTEPS=100", "-DSTEPS=120"), encoding="utf-8")
    return suite


def machine_of(root: Path, suite: Path, name: str) -> Machine:
    folders = [root / f"{kind}-{name}" for kind in ("tmp", "locks", "cache")]
    for folder in folders:
        folder.mkdir(mode=0o700)
    return Machine(suite, *folders)


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


def run(machine: Machine, arguments: Sequence[str]) -> float:
    """Run it to its end: seconds."""
    began = time.perf_counter()
    subprocess.run(command(arguments), cwd=machine.suite, env=machine.environment("whole"), capture_output=True)
    return time.perf_counter() - began


def interrupted(root: Path, suite: Path, mode: str, number: signal.Signals, moment_s: float) -> Iterator[str]:
    """What is wrong after one run that is sent a signal, in words; ``ended before`` if it was over by then."""
    mark = uuid.uuid4().hex
    copy = root / mark
    shutil.copytree(suite, copy, symlinks=True)
    machine = machine_of(root, suite, mark)._replace(suite=copy)
    with (machine.cache / "log").open("wb") as log:
        process = subprocess.Popen(
            command(MODES[mode]), cwd=copy, env=machine.environment(mark), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment_s)
            yield "ended before"
            return
        process.send_signal(number)
        try:
            status = process.wait(60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
            yield "did not end in 60 s"
    if status == 0:
        yield "exit status 0"
    until = time.monotonic() + PATIENCE_S
    while (orphans := processes_with(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    if orphans:
        yield f"{len(orphans)} orphans"
    for lock in machine.locks.glob("*.lock"):
        with contextlib.suppress(Timeout):
            FileLock(lock).acquire(timeout=max(until - time.monotonic(), 0.1)).lock.release()
            continue
        yield "lock held"
    if left := left_in(machine.temporary):
        yield f"folders left: {left[0]}"
        if number is not signal.SIGKILL:
            keep(machine, f"left-{mode}-{number.name}-{mark}-status-{status}-after-{moment_s:.3f}")
        for folder in machine.temporary.glob("gpuperf-runs-*/*"):
            os.utime(folder, (0, 0))  # so that the next run takes it for old
        subprocess.run(command(["--gpuperf", "--collect-only"]), cwd=copy, env=machine.environment("next"),
                       capture_output=True)  # fmt: skip
        if left := left_in(machine.temporary):
            yield f"folders left after the next run: {left[0]}"
    if "INTERNALERROR" in (machine.cache / "log").read_text(encoding="utf-8", errors="replace"):
        yield "internal error"
        keep(machine, f"internal-{mode}-{number.name}-{mark}")
    if not is_whole(copy / "baselines"):
        yield "baselines damaged"
    for folder in (copy, machine.temporary, machine.locks, machine.cache):
        shutil.rmtree(folder, ignore_errors=True)


def keep(machine: Machine, name: str) -> None:
    """What the run printed and what it left, in the temporary folder of this process."""
    folder = Path(tempfile.gettempdir()) / name
    shutil.copytree(machine.temporary, folder, symlinks=True)
    shutil.copy(machine.cache / "log", folder)


def is_whole(baselines: Path) -> bool:
    """Whether every record can be read, and no file is there that was being written."""
    files = [path for path in baselines.rglob("*") if path.is_file()]
    try:
        read = [json.loads(path.read_text(encoding="utf-8")) for path in files if path.suffix == ".json"]
    except ValueError:
        return False
    return bool(read) and not any(path.name.endswith(PART) for path in files)


def left_in(temporary: Path) -> list[str]:
    """Names of what a run of ours left in the temporary folder."""
    ours = [
        path for path in temporary.glob("gpuperf-*") if not path.name.startswith(("gpuperf-runs-", "gpuperf-locks"))
    ]
    return [path.name for path in (*ours, *temporary.glob("gpuperf-runs-*/*"))]


def processes_with(mark: str) -> list[int]:
    """Those that carry the mark of a run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
                if state != "Z" and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def cell(root: Path, suite: Path, mode: str, number: signal.Signals, moments: Sequence[float], at_once: int) -> Cell:
    def one(moment_s: float) -> list[str]:
        return list(interrupted(root, suite, mode, number, moment_s))

    seen: Counter[str] = Counter()
    with ThreadPoolExecutor(at_once) as runs:
        for words in runs.map(one, moments):
            seen.update(["runs", *words])
    return Cell(mode, number.name, seen)


COLUMNS = ("exit status 0", "orphans", "lock held", "folders left", "folders left after the next run",
           "internal error", "did not end in 60 s", "baselines damaged")  # fmt: skip
ALLOWED = ("folders left",)


def number_of(one: Cell, column: str) -> int:
    if column == "folders left":
        return sum(count for words, count in one.seen.items() if words.startswith("folders left: "))
    return sum(count for words, count in one.seen.items() if column in words)


def table(cells: Sequence[Cell], arguments: str) -> str:
    lines = [
        "# Runs that are interrupted", "",
        f"By `python benchmarks/interrupts.py{arguments}`, no GPU. *In time* are the runs that the signal found",
        f"running; orphans and locks are counted {PATIENCE_S:.0f} s later. What SIGKILL leaves in the temporary folder",
        "the next run removes.",
        "",
        f"| mode | signal | runs | in time | {' | '.join(COLUMNS)} |",
        f"|---|---|---|---|{'---|' * len(COLUMNS)}",
    ]  # fmt: skip
    for one in cells:
        counts = " | ".join(str(number_of(one, column)) for column in COLUMNS)
        runs, over = one.seen["runs"], one.seen["ended before"]
        lines.append(f"| {one.mode} | {one.name} | {runs} | {runs - over} | {counts} |")
    return "\n".join(lines) + "\n"


def is_well(one: Cell) -> bool:
    """Only what SIGKILL leaves for the next run to remove is allowed."""
    free = ALLOWED if one.name == "SIGKILL" else ()
    return not any(number_of(one, column) for column in COLUMNS if column not in free)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="of each mode and signal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--signal", action="append", choices=[one.name for one in SIGNALS])
    parser.add_argument("--output", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
    draw = random.Random(given.seed)
    signals = [one for one in SIGNALS if not given.signal or one.name in given.signal]
    cells = []
    with tempfile.TemporaryDirectory(prefix="interrupts-") as name:
        root = Path(name)
        suite = prepare(root)
        for mode in given.mode or MODES:
            copy = root / f"whole-{mode}"
            shutil.copytree(suite, copy)
            machine = machine_of(root, suite, f"whole-{mode}")._replace(suite=copy)
            length_s = max(run(machine, MODES[mode]) for _ in range(2))
            for number in signals:
                moments = [draw.uniform(0.05, length_s) for _ in range(given.runs)]
                cells.append(cell(root, suite, mode, number, moments, given.at_once))
                print(mode, f"{length_s:.1f} s", number.name, dict(cells[-1].seen), flush=True)
    text = table(cells, f" --runs {given.runs} --seed {given.seed}")
    print(text)
    if given.output is not None:
        given.output.write_text(text, encoding="utf-8")
    return 0 if all(map(is_well, cells)) else 1


if __name__ == "__main__":
    sys.exit(main())
