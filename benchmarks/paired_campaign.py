"""Does the gate keep its promises on a real GPU?  Many verdicts of known truth, on ten kernels of 2.5 us to 1 ms.

    python benchmarks/paired_campaign.py measure verdicts.jsonl --timer cupti --seconds 500
    python benchmarks/paired_campaign.py table verdicts.jsonl... --output docs/results/paired.md

``measure`` is one process.  It makes kernels as ``gpuperf selftest`` does and compares each with itself and with
versions that are about 1 % and 2 % slower, in turns, until the time is over; each comparison is a line in the file,
with its blocks.  Further processes append to the file.  ``table`` counts verdicts by kernel, timer and slowdown; its
exit status is 1 if equal code was SLOWER.
"""

from __future__ import annotations

import argparse
import json
import secrets
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.interface import Device
from pytest_gpuperf.model.timer_names import TIMERS, TimerName
from pytest_gpuperf.selftest.kernels import COPY, LOOP, Probe
from pytest_gpuperf.selftest.trials import ALPHA, LIMITS, Trials

KERNELS = [
    *(Probe(LOOP, count) for count in (130, 350, 700, 1500, 3500, 7500, 75_000)),
    *(Probe(COPY, count) for count in (1 << 20, 7 << 20, 16 << 20)),
]
HEAD = ("timer", "kernel", "us", "slower by", "verdicts", "SLOWER", "undecided", "block sd", "median s", "most s")

Line = dict[str, Any]


def measure(device: Device, timer_name: TimerName, kernels: Sequence[Probe], file: Path, seconds: float) -> None:
    """Append a line for each comparison; at least one of every version."""
    start, timer = time.perf_counter(), device.timer(timer_name)
    with device.lock(), file.open("a", encoding="utf-8") as lines:
        trials = {probe: Trials(device, timer, probe, secrets.randbits(48)) for probe in kernels}
        first = True
        while first or time.perf_counter() - start < seconds:
            for probe, one in trials.items():
                if first or time.perf_counter() - start < seconds:
                    lines.writelines(json.dumps(line) + "\n" for line in verdicts(probe, one))
                    lines.flush()
            first = False


def verdicts(probe: Probe, trials: Trials) -> list[Line]:
    """One comparison of each version of a kernel."""
    return [
        {
            "gpu": trials.device.facts.name, "timer": trials.timer.name, "kernel": f"{probe.family.name} {probe.count}",
            "duration_ns": trials.duration_ns, "percent": version.percent, "ratio": version.ratio, "seed": one.seed,
            "decision": getattr(one.decision(LIMITS, ALPHA), "value", ""), "seconds": one.seconds, "r": one.r,
        }
        for version, comparisons in trials.compared(0.0).items()
        for one in comparisons
    ]  # fmt: skip


def table(lines: Sequence[Line]) -> str:
    """A row for each timer, kernel and slowdown."""
    cells = defaultdict[tuple[str, str, float], list[Line]](list)
    for line in lines:
        cells[line["timer"], line["kernel"], line["percent"]].append(line)
    rows = [HEAD, ("---",) * len(HEAD), *(_row(cell, found) for cell, found in cells.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(cell: tuple[str, str, float], found: Sequence[Line]) -> tuple[str, ...]:
    decisions, seconds = [one["decision"] for one in found], [one["seconds"] for one in found]
    ratios = sorted(one["ratio"] - 1 for one in found)
    spread = statistics.median([float(np.std(one["r"])) for one in found])
    return (
        cell[0], cell[1], f"{statistics.median([one['duration_ns'] for one in found]) / 1000:.4g}",
        f"{ratios[0]:.2%} to {ratios[-1]:.2%}" if cell[2] else "equal code", str(len(found)),
        str(decisions.count("slower")), str(decisions.count("")), f"{spread:.3%}",
        f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}",
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="take verdicts in this process")
    measuring.add_argument("file", type=Path)
    measuring.add_argument("--timer", choices=TIMERS, default="cupti")
    measuring.add_argument("--seconds", type=float, default=120.0)
    counting = commands.add_parser("table", help="count them")
    counting.add_argument("files", type=Path, nargs="+")
    counting.add_argument("--output", type=Path, help="write the table to this markdown file")
    options = parser.parse_args(arguments)
    if options.command == "measure":
        measure(open_device(), options.timer, KERNELS, options.file, options.seconds)
        return 0
    lines = [json.loads(line) for file in options.files for line in file.read_text(encoding="utf-8").splitlines()]
    text = "# Paired verdicts of known truth\n\nMade by `python benchmarks/paired_campaign.py`.\n\n" + table(lines)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return int(any(one["decision"] == "slower" for one in lines if not one["percent"]))


if __name__ == "__main__":
    sys.exit(main())
