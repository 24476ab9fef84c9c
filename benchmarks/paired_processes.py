"""Callables and kernels against another revision: false verdicts, losses found, seconds.  On a GPU.

    python benchmarks/paired_processes.py run --runs 20 --times 20 --percents 0 --output DIR -- -k "not cuda"
    python benchmarks/paired_processes.py run --times 3 --percents 1 2 --output DIR -- -k "not 1_M and not cuda"
    python benchmarks/paired_processes.py run --runs 10 --times 5 --output DIR -- -k cuda
    python benchmarks/paired_processes.py run --runs 9 --times 3 --percents 0 1 2 --recorded-on 1 --output DIR
    python benchmarks/paired_processes.py merge DIR... --output docs/results/paired_processes.md

``run`` makes a repository of callables (CuPy, PyTorch, Triton and Numba, as far as they are installed), which are
paired by processes, and of CUDA sources, which are paired in one process and whose machine code always differs.  It
compares its working tree with its commit again and again, each time in fresh processes: unchanged, with 1 % more work,
with 2 % more.  With ``--recorded-on`` it compares with baselines of that commit, taken on another GPU.  A run has each
workload so many times, on other arrays each time, and leaves a file of its verdicts.  ``merge`` makes a table of them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from campaign.revision_suite import CUDA, SUITE, TRITON

ROOT = Path(__file__).resolve().parents[1]
PERCENTS = (0, 1, 2)


class Seen(NamedTuple):
    """One verdict."""

    workload: str
    percent: int
    verdict: str
    ratio: float | None
    time_ns: float | None
    seconds: float
    reason: str


def suite(folder: Path, percent: int, times: int, salt: int = 1) -> None:
    """Write the tests, with so many percent more work; kernels of another ``salt`` have other machine code."""
    text = SUITE.replace("{more}", str(percent)).replace("{times}", str(times)).replace("{salt}", str(salt))
    (folder / "test_callables.py").write_text(text, encoding="utf-8")


def repository(folder: Path, times: int = 1) -> None:
    folder.mkdir()
    suite(folder, 0, times, salt=0)
    (folder / "cells.cu").write_text(CUDA, encoding="utf-8")
    (folder / "triton_kernels_of_suite.py").write_text(TRITON, encoding="utf-8")
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n", encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "callables")


def git(folder: Path, *command: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *command], cwd=folder, check=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def recorded(folder: Path, gpu: str, more: Sequence[str]) -> None:
    """Commit baselines of the last commit, taken on the GPU that ``CUDA_VISIBLE_DEVICES=gpu`` shows."""
    said = in_pytest(folder, "--update-baselines", *more, CUDA_VISIBLE_DEVICES=gpu)
    if not (folder / "baselines").is_dir():
        raise SystemExit(said)
    commit(folder, "baselines")


def compared(folder: Path, percent: int, times: int, file: Path, more: Sequence[str]) -> list[Seen]:
    """One run in fresh processes, with so many percent more work on this side."""
    suite(folder, percent, times)
    against = () if (folder / "baselines").is_dir() else ("--gpuperf-against=HEAD",)
    flags = ("--gpuperf", *against, "--gpuperf-confirmations=100", f"--gpuperf-report={file}")
    said = in_pytest(folder, *flags, *more)
    if not file.exists():
        raise SystemExit(said)
    return list(verdicts(json.loads(file.read_text(encoding="utf-8")), percent))


def in_pytest(folder: Path, *arguments: str, **more_environment: str) -> str:
    """The end of what it prints."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": path, **more_environment}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout[-3000:] + done.stderr[-3000:]


def verdicts(report: dict[str, Any], percent: int) -> Iterator[Seen]:
    for test in report["tests"]:
        for work in test.get("workloads", ()):
            for one in work.get("judgements", ()):
                if one["kind"] == "time":
                    figures = one.get("time") or {}
                    name = f"{test['test'].partition('[')[0].removeprefix('test_')}: {work['key']['workload']}"
                    yield Seen(
                        name, percent, one["verdict"], figures.get("ratio"), figures.get("after_ns"),
                        work.get("seconds", 0.0), one.get("reason", ""),
                    )  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    chosen.output.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + chosen.seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        repository(folder, chosen.times)
        if chosen.recorded_on is not None:
            recorded(folder, chosen.recorded_on, chosen.pytest)
        for number in range(chosen.runs):
            for percent in chosen.percents:
                if time.monotonic() > ends:
                    return 0
                file = Path(name) / f"{number}-{percent}.json"
                seen = compared(folder, percent, chosen.times, file, chosen.pytest)
                file = chosen.output / f"{os.getpid()}-{number}-{percent}.json"
                file.write_text(json.dumps([one._asdict() for one in seen]), encoding="utf-8")
                print(f"run {number + 1} at +{percent} %: {len(seen)} verdicts", flush=True)
    return 0


PAGE = """\
# Callables against another revision

Each side runs in its own process, on arrays of its own for each verdict; what is slower was paired again, in fresh
processes. The truth is so many percent more work on one side: rows or elements, as many as were thought to take so much
time. Made by

    python benchmarks/paired_processes.py run --times 20 --percents 0 --output DIR -- -k "not cuda"
    python benchmarks/paired_processes.py run --times 3 --percents 1 2 --output DIR -- -k "not 1_M and not cuda"
    python benchmarks/paired_processes.py merge DIR... --output docs/results/paired_processes.md

Equal work: {null:,} verdicts by {pairs} pairs of processes, {false} of them SLOWER, FASTER or SUSPECT. A verdict took
{median:.2f} s in the middle and {most:.2f} s at 90 %, the other process's way to the workload included.

{table}
"""
COLUMNS = (
    "workload", "time, us", "truth", "verdicts", "SLOWER", "FASTER", "SAME or NOT-SLOWER", "other",
    "ratio: median, scatter", "seconds, median and 90 %",
)  # fmt: skip


def merge(chosen: argparse.Namespace) -> int:
    """Exit status 1 if equal work was called slower or faster."""
    files = [file for folder in chosen.dirs for file in sorted(folder.rglob("*.json"))]
    seen = [Seen(**one) for file in files for one in json.loads(file.read_text(encoding="utf-8"))]
    cells = sorted({(one.workload, one.percent) for one in seen})
    rows = [row([one for one in seen if (one.workload, one.percent) == cell]) for cell in cells]
    table = "\n".join([f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}", *rows])
    null = [one for one in seen if not one.percent]
    false = [one for one in null if one.verdict in ("SLOWER", "FASTER", "SUSPECT")]
    seconds = sorted(one.seconds for one in null)
    chosen.output.write_text(PAGE.format(
        null=len(null), pairs=sum(file.stem.endswith("-0") for file in files), false=len(false),
        median=_median(seconds), most=_at(seconds, 0.9), table=table,
    ), encoding="utf-8")  # fmt: skip
    print(f"{len(seen)} verdicts, {len(false)} false ones")
    return int(bool(false))


def row(seen: Sequence[Seen]) -> str:
    names = [one.verdict for one in seen]
    counts = [names.count("SLOWER"), names.count("FASTER"), names.count("SAME") + names.count("NOT-SLOWER")]
    ratios = [one.ratio for one in seen if one.ratio is not None]
    times = [one.time_ns / 1e3 for one in seen if one.time_ns is not None]
    seconds = sorted(one.seconds for one in seen)
    first, scatter = seen[0], 100 * statistics.pstdev(ratios or [1.0])
    return (
        f"| {first.workload} | {_median(times):.4g} | +{first.percent} % | {len(seen)} | {counts[0]} | {counts[1]} | "
        f"{counts[2]} | {len(seen) - sum(counts)} | {_median(ratios):.4f}, {scatter:.2f} % | "
        f"{_median(seconds):.2f}, {_at(seconds, 0.9):.2f} |"
    )


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else float("nan")


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="take verdicts")
    running.add_argument("--runs", type=int, default=20, help="pairs of processes for each truth (default 20)")
    running.add_argument("--times", type=int, default=1, help="how often a pair runs each callable (default 1)")
    running.add_argument("--percents", type=int, nargs="+", default=[*PERCENTS], help="truths (default 0 1 2)")
    running.add_argument("--recorded-on", metavar="GPU", help="compare with baselines that this GPU took")
    running.add_argument("--seconds", type=float, default=1e9, help="begin no run after so many")
    running.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for what is found")
    running.add_argument("pytest", nargs="*", help="more for pytest, behind --: -k softmax")
    merging = commands.add_parser("merge", help="make a table")
    merging.add_argument("dirs", type=Path, nargs="+", metavar="DIR")
    merging.add_argument("--output", type=Path, required=True, metavar="MD", help="the page to write")
    chosen = parser.parse_args(arguments)
    return run(chosen) if chosen.command == "run" else merge(chosen)


if __name__ == "__main__":
    sys.exit(main())
