"""``gpuperf bisect`` and the ledger on a GPU, in repositories made for them.

    python benchmarks/history_on_gpu.py bisect
    python benchmarks/history_on_gpu.py ledger --quiet-runs 20 --runs 40

``bisect`` makes 16 commits that all change the machine code, the eleventh by 2 % more work, and looks for it.
``ledger`` gates unchanged code again and again, then a commit of 0.2 % more work until a run exits with 14.  Both exit
with 1 if the culprit is another one, equal code was reported, or the loss was not.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

CULPRIT = 11
REPORTED = 14
"""Exit status of what the ledger proves."""
KERNEL = """\
extern "C" __global__ void work(const float* a, float* b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    for (int k = 0; k < %d; ++k) x = x * %ff + a[i];
    b[i] = x;
}
"""
TEST = """\
def test_work(cuda_kernel, gpu, gpuperf):
    a = gpu.random(1 << 20, seed=1)
    b = gpu.empty_like(a)
    gpuperf(cuda_kernel("work.cu", "work").launch(grid=4096, block=256, args=(a, b)))
"""


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str, steps: int, factor: float = 0.25) -> str:
    (folder / "work.cu").write_text(KERNEL % (steps, factor), encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> str:
    """The first commit."""
    git(folder, "init", "-q", "-b", "main")
    (folder / "test_work.py").write_text(TEST, encoding="utf-8")
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n", encoding="utf-8")
    return commit(folder, "State 0", 1000)


def bisect(folder: Path) -> int:
    first = repository(folder)
    states = [
        commit(folder, f"State {state}", 1020 if state >= CULPRIT else 1000, 0.25 + state / 100)
        for state in range(1, 17)
    ]
    command = "import sys; from pytest_gpuperf.cli.command_line import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, "bisect", "--good", first, "test_work.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout + done.stderr)
    found = re.search(r"^(\w+) .* made it slower", done.stdout, re.MULTILINE)
    return int(not (found and states[CULPRIT - 1].startswith(found[1])))


def ledger(folder: Path, quiet_runs: int, runs: int) -> int:
    repository(folder)
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--gpuperf"]
    subprocess.run([*pytest, "--update-baselines"], cwd=folder, check=True, capture_output=True)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Baselines")

    def reported_at(what: str, most: int) -> int:
        """The first run that the ledger failed; 0 for none.  Raises ``SystemExit`` for runs that fail otherwise."""
        for number in range(1, most + 1):
            begun = time.monotonic()
            gate = [*pytest, "--gpuperf-all", "--gpuperf-ledger=gate"]
            done = subprocess.run(gate, cwd=folder, capture_output=True, text=True, check=False)
            print(f"{what}, run {number}: status {done.returncode}, {time.monotonic() - begun:.1f} s", flush=True)
            if done.returncode:
                print(done.stdout)
            if done.returncode == REPORTED:
                return number
            if done.returncode:
                raise SystemExit(1)
        return 0

    if reported_at("unchanged", quiet_runs):
        return 1
    commit(folder, "0.2 % more", 1002)
    return int(not reported_at("+0.2 %", runs))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("bisect", help="find a commit of 2 %% among 16")
    adding = commands.add_parser("ledger", help="re-runs of equal code, then a loss of 0.2 %%")
    adding.add_argument("--quiet-runs", type=int, default=20, help="of unchanged code (default 20)")
    adding.add_argument("--runs", type=int, default=40, help="at most, of the loss (default 40)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        if chosen.command == "bisect":
            return bisect(Path(name))
        return ledger(Path(name), chosen.quiet_runs, chosen.runs)


if __name__ == "__main__":
    sys.exit(main())
