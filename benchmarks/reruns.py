"""How often is an unchanged suite undecided?  Rates of verdicts on time over several runs of one suite.

    python benchmarks/reruns.py --runs 20 --output docs/results/reruns.md [PYTEST_ARGUMENT...]

Each run is ``pytest --gpuperf --gpuperf-all`` in a process of its own, so unchanged workloads are paired, too.  Nothing
changes between the runs, and the baselines are to be of the same code: any SLOWER or SUSPECT is a false alarm.  Exit
status 1 if there is one, or if a run left no report.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FALSE_ALARMS = ("SLOWER", "SUSPECT")
ALWAYS_TOLD = ("INCONCLUSIVE", *FALSE_ALARMS)
"""Verdicts with a row even where there are none."""


def run_once(number: int, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    """One gated run in a fresh process: its JSON report."""
    report = folder / f"run-{number}.json"
    command = [sys.executable, "-m", "pytest", "--gpuperf", "--gpuperf-all", f"--gpuperf-report={report}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"run {number} left no report (exit status {done.returncode}):\n{done.stdout[-3000:]}")
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def verdicts_of(report: dict[str, Any]) -> dict[str, list[str]]:
    """Verdicts on time, by workload."""
    found: dict[str, list[str]] = {}
    for test in report["tests"]:
        for work in test.get("workloads", ()):
            key = work["key"]
            name = f"{key['module']}::{key['test']} [{key['workload']}]"
            found.setdefault(name, []).extend(
                judgement["verdict"] for judgement in work.get("judgements", ()) if judgement["kind"] == "time"
            )
    return found


def table(runs: Sequence[dict[str, list[str]]]) -> list[str]:
    """Lines of Markdown: how often each verdict was given, in how many runs, and of how many workloads."""
    given = [(name, number, verdict) for number, run in enumerate(runs) for name in run for verdict in run[name]]
    counts = Counter(verdict for _, _, verdict in given)
    lines = ["| verdict | times | share | in runs | of workloads |", "|---|---|---|---|---|"]
    for verdict in sorted({*counts, *ALWAYS_TOLD}, key=lambda one: (-counts[one], one)):
        in_runs = len({number for _, number, one in given if one == verdict})
        workloads = len({name for name, _, one in given if one == verdict})
        share = counts[verdict] / len(given) if given else 0.0
        lines.append(f"| {verdict} | {counts[verdict]} | {share:.2%} | {in_runs} of {len(runs)} | {workloads} |")
    return lines


def false_alarms(runs: Sequence[dict[str, list[str]]]) -> list[str]:
    """Workloads that a run called slower, one line each."""
    return [
        f"run {number}: {name} is {verdict}"
        for number, run in enumerate(runs, start=1)
        for name, verdicts in run.items()
        for verdict in verdicts
        if verdict in FALSE_ALARMS
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--output", type=Path)
    own, given = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gpuperf-reruns-") as folder:
        runs = [verdicts_of(run_once(number, given, Path(folder))) for number in range(1, own.runs + 1)]
    alarms = false_alarms(runs)
    text = "\n".join([f"# {own.runs} runs of one unchanged suite", "", *table(runs), "", *alarms]).rstrip() + "\n"
    print(text)
    if own.output is not None:
        own.output.write_text(text, encoding="utf-8")
    timed = sum(len(verdicts) for run in runs for verdicts in run.values())
    if not timed:
        print("no run has a verdict on time: nothing was shown")
    return int(bool(alarms) or not timed)


if __name__ == "__main__":
    raise SystemExit(main())
