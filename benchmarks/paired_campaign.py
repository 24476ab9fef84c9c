"""Does the paired gate keep its promises on real GPUs?  Thousands of verdicts whose true answer is known.

    python benchmarks/paired_campaign.py calibrate --dir DIR
    python benchmarks/paired_campaign.py measure aa --dir DIR --processes 6 --repeats 30 --seconds 120
    python benchmarks/paired_campaign.py measure effects --dir DIR --processes 6 --repeats 9 --seconds 300
    python benchmarks/paired_campaign.py measure fine --dir DIR --processes 2 --repeats 5 --seconds 60
    python benchmarks/paired_campaign.py measure blocks --dir DIR --processes 1 --seconds 100
    python benchmarks/paired_campaign.py measure aa --timer graph ...
    python benchmarks/paired_campaign.py merge DIR... --output docs/results/paired.md --replays tests/replays

``calibrate`` makes kernels of chosen lengths and versions of them that are slower by a known share (by instruction
count for loops, by CUPTI for copies).  ``measure`` starts fresh processes, a chain per GPU; in each, every kernel is
judged as the gate would judge it: pilot, block size, randomised blocks, the share of alpha of a run's 20th workload.
A SLOWER is confirmed by the next process of its chain.  Both kernels of a pair lie in modules of their own with other
functions around them; in A/A the machine code of the two is the same to the bit.  Results are appended line by line,
so a campaign can be cut short and continued, in DIR or in another folder that has its ``plan.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from campaign.child import Task, run
from campaign.conduct import conduct, visible_gpus
from campaign.plan import calibrate

from pytest_gpuperf.model.timer_names import TIMERS

DEVICE = "pytest_gpuperf.device.discovery:open_device"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if a process of the campaign failed or a promise was broken."""
    options = parser().parse_args(arguments)
    if options.command == "measure" and options.gpus is None:
        options.gpus = visible_gpus()
    if options.command == "calibrate":
        return calibrate(options.dir, options.device, refine_s=options.seconds)
    if options.command == "child":
        fields = json.loads(options.task)
        run(Task(**{**fields, "folder": Path(fields["folder"])}))
        return 0
    if options.command == "merge":
        from campaign.merge import merge

        return merge(options.dirs, options.output, options.replays)
    task = Task(
        folder=options.dir, part=options.part, timer=options.timer, process="", index=0,
        processes=options.processes * len(options.gpus), repeats=options.repeats, seconds=0.0, device=options.device,
        only=options.only,
    )  # fmt: skip
    return int(conduct(task, options.gpus, options.processes, options.seconds) > 0)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest="command", required=True)
    calibrating = commands.add_parser("calibrate", help="make the kernels: writes DIR/plan.json")
    calibrating.add_argument("--seconds", type=float, default=20.0, help="for refining the copies' slowdowns")
    measuring = commands.add_parser("measure", help="take verdicts in fresh processes")
    measuring.add_argument("part", choices=("aa", "effects", "fine", "blocks"))
    measuring.add_argument("--timer", choices=TIMERS, default="cupti")
    measuring.add_argument("--gpus", type=lambda text: text.split(","), default=None, help="default: all visible")
    measuring.add_argument("--processes", type=int, default=6, help="per GPU")
    measuring.add_argument("--repeats", type=int, default=1, help="verdicts per cell and process")
    measuring.add_argument("--seconds", type=float, default=120.0, help="for all processes together")
    measuring.add_argument("--only", nargs="+", default=(), metavar="NAME", help="kernels, or cells such as softmax@1")
    for one in (calibrating, measuring):
        one.add_argument("--dir", type=Path, required=True)
        one.add_argument("--device", default=DEVICE, help=argparse.SUPPRESS)
    child = commands.add_parser("child", help=argparse.SUPPRESS)
    child.add_argument("task")
    merging = commands.add_parser("merge", help="tables and replay fixtures of all results")
    merging.add_argument("dirs", type=Path, nargs="+", metavar="DIR")
    merging.add_argument("--output", type=Path, help="write the tables to this markdown file")
    merging.add_argument("--replays", type=Path, help="write recorded block sequences into this folder")
    return made


if __name__ == "__main__":
    sys.exit(main())
