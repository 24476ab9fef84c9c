"""Runs that are ended or killed at random moments: what they leave behind 5 s later.  Needs no GPU.

    python benchmarks/kill_runs.py [RUNS]

SIGINT, SIGTERM and SIGKILL come at moments that are uniform over the length of a gate without a GPU and, with the
simulated one of the tests and a GPU's real lock, of an update, a gate that confirms a loss and a comparison with a
revision.  Exit status 1 if a file is torn, or a process, a lock or a green status is left.
"""

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
PATIENCE_S, MARK = 5.0, "KILLED_RUN"
"""The mark is in the environment of a run and of all that it starts."""
LOCKED = """
import os
from pytest_gpuperf.device.lock import hold_gpu

class Locked(SimulatedGpu):
    def lock(self):
        return hold_gpu(self.facts.uuid)

def work("""
MODES = {
    "static gate": ("--gpuperf", "--gpuperf-arch=sm_90"),
    "update": ("--update-baselines=all", "--gpuperf-disturbed"),
    "confirm": ("--gpuperf", "-k", "1024"),
    "against": ("--gpuperf", "--gpuperf-against=HEAD"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
WRONG = ("torn file", "orphan", "lock held", "status 0", "no end")


def started(mode: str, folder: Path) -> subprocess.Popen[bytes]:
    own = {name: str(folder / name) for name in ("TMPDIR", "GPUPERF_LOCK_DIR", "GPUPERF_CACHE_DIR")}
    for place in own.values():
        Path(place).mkdir()
    own |= {"CI": "", "CUDA_VISIBLE_DEVICES": "", MARK: folder.name, "NO_GPU": "1" * (mode == "static gate")}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *MODES[mode]]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(words, cwd=folder / "suite", env={**os.environ, **own}, stdout=log, stderr=log)


def prepare(folder: Path) -> None:
    """A suite with baselines, in a repository, in which one kernel is slower than on record."""
    from suite_under_test import FILES, SIMULATED

    given = "return None if os.environ['NO_GPU'] else Locked"
    conftest = SIMULATED.replace("\ndef work(", LOCKED).replace("return SimulatedGpu", given)
    suite = folder / "suite"
    suite.mkdir(parents=True)
    for name, text in {**FILES, "conftest.py": conftest, ".gitignore": ".gpuperf\n__pycache__\n"}.items():
        (suite / name).write_text(text)
    assert started("update", folder).wait() == 0
    for git in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]):
        subprocess.run(["git", *git], cwd=suite, check=True)
    (suite / "test_suite.py").write_text(FILES["test_suite.py"].replace("-DSTEPS=100", "-DSTEPS=120"))


def killed(folder: Path, mode: str, number: signal.Signals, moment_s: float) -> Iterator[str]:
    """What is wrong after one run that is sent a signal; ``over`` if it had ended by then."""
    process = started(mode, folder)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment_s)
        yield "over"
        return
    process.send_signal(number)
    try:
        yield from ["status 0"] * (process.wait(60.0) == 0)
    except subprocess.TimeoutExpired:
        process.kill()
        yield "no end"
    until = time.monotonic() + PATIENCE_S
    while (orphans := processes_with(folder.name)) and time.monotonic() < until:
        time.sleep(0.05)
    yield from ["orphan"] * bool(orphans)
    for lock in [*(folder / "GPUPERF_LOCK_DIR").glob("*.lock"), *folder.rglob(".worktrees/*/*.lock")]:
        try:
            FileLock(lock).acquire(timeout=0.1).lock.release()
        except Timeout:
            yield "lock held"
    files = [path for path in (folder / "suite/baselines").rglob("*") if path.is_file()]
    documents = [path.read_text() for path in files if path.suffix == ".json"]
    documents += [line for path in files if path.suffix == ".jsonl" for line in path.read_text().splitlines() if line]
    with contextlib.suppress(ValueError):
        if list(map(json.loads, documents)):
            files = [path for path in files if ".part" in path.name]
    yield from ["torn file"] * bool(files)


def processes_with(mark: str) -> list[Path]:
    found: list[Path] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # another user's, or over; that of a zombie is empty
            found += [entry] * (f"{MARK}={mark}\0".encode() in entry.read_bytes())
    return found


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what it starts in the background ignore it
    draw, total = random.Random(1), Counter[str]()
    cells = [(mode, number) for mode in MODES for number in SIGNALS]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        prepare(Path(name, "first"))

        def one(number: int, mode: str, kind: signal.Signals, moment_s: float) -> tuple[list[str], float]:
            folder, began = Path(name, f"run-{number}-"), time.perf_counter()
            shutil.copytree(Path(name, "first", "suite"), folder / "suite")
            return list(killed(folder, mode, kind, moment_s)), time.perf_counter() - began

        lengths_s = {mode: one(-1 - at, mode, signal.SIGKILL, 600.0)[1] for at, mode in enumerate(MODES)}
        for at, (mode, kind) in enumerate(cells):
            moments = [(run, draw.uniform(0.05, lengths_s[mode])) for run in range(at, runs, len(cells))]
            ends = [pool.submit(one, run, mode, kind, moment_s) for run, moment_s in moments]
            seen = Counter(word for end in ends for word in end.result()[0])
            total.update(seen)
            print(f"{mode:12} {kind.name:8} {len(ends):3} runs {dict(seen)}", flush=True)
    wrong = {word: total[word] for word in WRONG}
    print(f"{runs} runs, {runs - total['over']} of them ended by the signal: {wrong}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
