"""Runs that are ended or killed at random moments: what they leave behind.

    python benchmarks/kill_runs.py [--runs 200] [--seed 1]

SIGINT, SIGTERM and SIGKILL come at moments that are uniform over the length of a gate, an update, a run that confirms
a loss and a comparison with a revision.  Needs no GPU: the simulated one of the tests, with the GPU's real lock.
Exit status 1 if a file is torn, or a process, a lock or a green status is there 5 s later.
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
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock, Timeout

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "plugin")]
PATIENCE_S = 5.0
MARK = "KILLED_RUN"
"""In the environment of a run and of all that it starts."""
LOCKED = """
class Locked(SimulatedGpu):
    def lock(self):
        from pytest_gpuperf.device.lock import GpuLock
        return GpuLock(self.facts.uuid).held()
"""
MODES = {
    "static gate": ("--gpuperf", "--gpuperf-arch=sm_90"),
    "update": ("--update-baselines=all", "--gpuperf-force-update"),
    "confirm": ("--gpuperf", "-k", "1024"),
    "against": ("--gpuperf", "--gpuperf-against=HEAD"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
WRONG = ("torn file", "orphan", "lock held", "status 0", "no end")


def command(mode: str, folder: Path, mark: str) -> tuple[list[str], dict[str, str]]:
    own = {name: str(folder / name) for name in ("TMPDIR", "GPUPERF_LOCK_DIR", "GPUPERF_CACHE_DIR")}
    for place in own.values():
        Path(place).mkdir(exist_ok=True)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *MODES[mode]]
    return words, {
        **os.environ,
        **own,
        "CI": "",
        "CUDA_VISIBLE_DEVICES": "",
        MARK: mark,
        "NO_GPU": "1" * (mode == "static gate"),
    }


def prepare(folder: Path) -> None:
    """A suite with baselines, in a repository, in which one kernel is slower than on record."""
    from suite_under_test import FILES, SIMULATED

    conftest = SIMULATED.replace("\n\ndef work(", f"\nimport os\n{LOCKED}\n\ndef work(")
    conftest = conftest.replace("return SimulatedGpu", "return None if os.environ['NO_GPU'] else Locked")
    suite = folder / "suite"
    suite.mkdir(parents=True)
    for name, text in {**FILES, "conftest.py": conftest, ".gitignore": ".gpuperf\n__pycache__\n"}.items():
        (suite / name).write_text(text, encoding="utf-8")
    words, environment = command("update", folder, "first")
    subprocess.run(words, cwd=suite, env=environment, check=True, stdout=subprocess.DEVNULL)
    for git in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]):
        subprocess.run(["git", *git], cwd=suite, check=True)
    test = suite / "test_suite.py"
    test.write_text(test.read_text(encoding="utf-8").replace("-DSTEPS=100", "-DSTEPS=120"), encoding="utf-8")


def killed(folder: Path, mode: str, number: signal.Signals, moment_s: float) -> Iterator[str]:
    """What is wrong after one run that is sent a signal; ``over`` if it had ended by then."""
    words, environment = command(mode, folder, folder.name)
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        words, cwd=folder / "suite", env=environment, stdin=nothing, stdout=nothing, stderr=nothing
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment_s)
        yield "over"
        return
    process.send_signal(number)
    try:
        if process.wait(60.0) == 0:
            yield "status 0"
    except subprocess.TimeoutExpired:
        process.kill()
        yield "no end"
    until = time.monotonic() + PATIENCE_S
    while (orphans := processes_with(folder.name)) and time.monotonic() < until:
        time.sleep(0.05)
    yield from ["orphan"] * bool(orphans)
    for lock in [*(folder / "GPUPERF_LOCK_DIR").glob("*.lock"), *folder.rglob("worktrees/*/*.lock")]:
        try:
            FileLock(lock).acquire(timeout=0.1).lock.release()
        except Timeout:
            yield "lock held"
    yield from ["torn file"] * (not is_whole(folder / "suite/baselines"))


def is_whole(baselines: Path) -> bool:
    """Whether every record can be read, and no file is there that was being written."""
    try:
        read = [json.loads(path.read_text(encoding="utf-8")) for path in baselines.rglob("*.json")]
    except ValueError:
        return False
    return bool(read) and not any(".part" in path.name for path in baselines.rglob("*"))


def processes_with(mark: str) -> list[str]:
    found = []
    for entry in filter(lambda one: one.name.isdigit(), Path("/proc").iterdir()):
        with contextlib.suppress(OSError):
            state = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            if state != "Z" and f"{MARK}={mark}\0".encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
    draw, total = random.Random(given.seed), Counter[str]()
    cells = [(mode, number) for mode in MODES for number in SIGNALS]
    with tempfile.TemporaryDirectory(prefix="kill-runs-") as name, ThreadPoolExecutor(2) as pool:
        prepare(Path(name, "first"))

        def one(number: int, mode: str, kind: signal.Signals, moment_s: float) -> list[str]:
            folder = Path(name, f"run-{number}-")
            shutil.copytree(Path(name, "first", "suite"), folder / "suite")
            found = list(killed(folder, mode, kind, moment_s))
            shutil.rmtree(folder, ignore_errors=True)
            return found

        lengths = {}
        for mode in MODES:
            began = time.perf_counter()
            one(-1, mode, signal.SIGKILL, 600.0)
            lengths[mode] = time.perf_counter() - began
        for cell, (mode, kind) in enumerate(cells):
            numbers = range(cell, given.runs, len(cells))
            moments = [draw.uniform(0.05, lengths[mode]) for _ in numbers]
            each = list(pool.map(one, numbers, [mode] * len(moments), [kind] * len(moments), moments))
            seen = Counter(word for words in each for word in words)
            total.update(seen)
            print(
                f"{mode:12} {kind.name:8} {len(each):3} runs, {len(each) - seen['over']:3} in time",
                dict(seen),
                flush=True,
            )
    wrong = {word: total[word] for word in WRONG}
    print(f"{given.runs} runs, {given.runs - total['over']} of them ended by the signal: {wrong}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
