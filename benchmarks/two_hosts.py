"""Two hosts by pytest-xdist's remote workers: an update compared byte by byte with a local one, and a host that dies.

    python benchmarks/two_hosts.py [--host SPEC --host SPEC] [--output docs/results/two_hosts.md]

``SPEC`` is what ``--tx`` takes, up to the folder, which is added: ``ssh=user@one//python=/usr/bin/python3``.  Without
any, both hosts are processes of this machine in folders of their own, which are copied to and started in the same way.
Needs no GPU: what is updated and gated is the machine code.  Exit status 1 if a finished result is lost, a test does
not come back after its host died, or a file differs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TESTS = 40
KILLED_AFTER = 3
"""Tests that the second host finishes before its process dies in the middle of another."""

KERNEL = """
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
#pragma unroll
    for (int k = 0; k < STEPS; ++k) x = x * 1.5f + a[i];
    if (i < n) b[i] = x;
}
"""
SUITE = """
import time
import pytest

@pytest.mark.parametrize("steps", range(1, {tests} + 1))
def test_work(cuda_kernel, steps):
    assert cuda_kernel("work.cu", "work", options=[f"-DSTEPS={{steps}}"]).registers > 0
    time.sleep(0.05)
"""
CONFTEST = """
import os
import signal
from pathlib import Path

HOST = Path(__file__).parents[1]
FINISHED = []

def pytest_runtest_call(item):
    if (HOST / "dies").exists() and len(FINISHED) == {killed}:
        (HOST / "dies").unlink()
        os.kill(os.getpid(), signal.SIGKILL)

def pytest_runtest_logreport(report):
    if report.when == "teardown" and not hasattr(report, "node"):
        FINISHED.append(report.nodeid)
        with open(HOST / "finished.txt", "a") as file:
            file.write(report.nodeid + "\\n")
"""
OPTIONS = ("-p", "no:cacheprovider", "-W", "ignore", "--gpuperf-arch=sm_80,sm_90")


class Seen(NamedTuple):
    """One line of the table."""

    case: str
    status: int
    found: str
    well: bool


def prepare(suite: Path) -> None:
    suite.mkdir()
    (suite / "work.cu").write_text(KERNEL, encoding="utf-8")
    (suite / "test_work.py").write_text(SUITE.format(tests=TESTS), encoding="utf-8")
    (suite / "conftest.py").write_text(CONFTEST.format(killed=KILLED_AFTER), encoding="utf-8")
    (suite / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def run(suite: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CI": "", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
    return subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, timeout=600)


def hosts(specs: Sequence[str], folders: Sequence[Path], suite: Path) -> list[str]:
    """Flags that spread a run over both."""
    where = [f"--tx={spec}//chdir={folder}" for spec, folder in zip(specs, folders, strict=True)]
    return ["-d", *where, f"--rsyncdir={suite}", str(suite)]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def update(suite: Path, spread: Sequence[str]) -> Seen:
    """Both write what they recorded into the controller's folder."""
    local = run(suite, "--update-baselines=all")
    alone = contents(suite / "baselines")
    shutil.rmtree(suite / "baselines")
    remote = run(suite, "--update-baselines=all", *spread)
    both = contents(suite / "baselines")
    differing = [name for name in alone.keys() | both.keys() if alone.get(name) != both.get(name)]
    said = f"{len(both)} files, {len(differing)} of them other than after a local update"
    return Seen("update", remote.returncode, said, remote.returncode == local.returncode == 0 and not differing)


def gate(suite: Path, spread: Sequence[str]) -> Seen:
    """Unchanged code on two hosts."""
    done = run(suite, "--gpuperf", "--gpuperf-report=report.json", *spread)
    judged = outcomes(suite)
    return Seen("gate", done.returncode, f"{len(judged)} of {TESTS} tests judged", done.returncode == 0 and
                len(judged) == TESTS)  # fmt: skip


def killed(suite: Path, spread: Sequence[str], folder: Path) -> Seen:
    """The second host dies in the middle of a test."""
    (folder / "dies").touch()
    done = run(suite, "--gpuperf", "--gpuperf-report=report.json", *spread)
    finished = (folder / "finished.txt").read_text(encoding="utf-8").split()[-KILLED_AFTER:]
    judged = outcomes(suite)
    lost = [node for node in finished if node not in judged]
    crashed = done.stdout.count("\nworker 'gw1' crashed while running")
    again = f"{len(judged)} of {TESTS} tests judged, {len(lost)} of {len(finished)} finished on the dead host lost"
    well = done.returncode == 1 and not lost and len(judged) == TESTS - 1 and crashed == 1
    return Seen("gate, one host killed", done.returncode, f"{again}, {crashed} failed by its death", well)


def outcomes(suite: Path) -> set[str]:
    told = json.loads((suite / "report.json").read_text(encoding="utf-8"))
    return {f"{test['module']}::{test['test']}" for test in told["tests"] if test.get("workloads")}


def table(rows: Sequence[Seen], kind: str) -> str:
    lines = [
        "# Two hosts", "",
        f"{TESTS} kernels for two architectures, spread over {kind}, by `python benchmarks/two_hosts.py`; no GPU.", "",
        "| run | exit status | what was found |", "|---|---|---|",
        *(f"| {one.case} | {one.status} | {one.found} |" for one in rows),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", action="append", default=[], metavar="SPEC", help="as --tx takes it; give two")
    parser.add_argument("--output", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    specs = given.host or [f"popen//python={sys.executable}"] * 2
    if len(specs) != 2:
        parser.error("--host: give it twice, once for each host")
    with tempfile.TemporaryDirectory(prefix="two-hosts-") as name:
        root = Path(name)
        suite, folders = root / "suite", [root / "one", root / "two"]
        prepare(suite)
        for folder in folders:
            folder.mkdir()
        spread = hosts(specs, folders, suite)
        rows = [update(suite, spread), gate(suite, spread), killed(suite, spread, folders[1])]
    kind = "two hosts by ssh" if given.host else "two processes in folders of their own"
    text = table(rows, kind)
    print(text)
    if given.output is not None:
        given.output.write_text(text, encoding="utf-8")
    return 0 if all(one.well for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
