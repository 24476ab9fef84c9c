"""compute-sanitizer over the example suite: memcheck over all of it, racecheck and synccheck over shared memory.

    python benchmarks/sanitize.py run --to DIR [--only TOOL] [--sanitizer PATH] [--limit SECONDS] [--option=OPTION]...
        [--files test_NAME.py...]
    python benchmarks/sanitize.py page DIR... --output docs/results/sanitizer.md

``run`` leaves a JSON file of each tool in DIR, with the log and the output of each of its processes, ``memcheck-1.log``
and ``memcheck-1.out``.  It ends with status 1 if a tool reports an error or has an internal one, did not come to its
end, missed a kernel that it had to see, or is blind to a kernel that is wrong.  ``page`` makes the page of such files,
of one folder or of several.  Needs a GPU, CuPy and compute-sanitizer; no network.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sanitizing.kernels import shared_kernels
from sanitizing.page import page
from sanitizing.process import Setting
from sanitizing.tools import BASELINES, TOOLS, Outcome, check

TUPLES = ("unfinished", "internal", "missed")
"""Fields of an outcome that JSON makes lists of."""


def run(options: argparse.Namespace) -> int:
    """Run the tools one after the other; the number of those that are not content."""
    sanitizer = options.sanitizer or shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if shutil.which(sanitizer) is None:
        print(f"sanitize: there is no {sanitizer}: give its path with --sanitizer", file=sys.stderr)
        return 1
    options.to.mkdir(parents=True, exist_ok=True)
    setting = Setting(sanitizer, tuple(options.option), options.limit)
    discontent = 0
    for tool in [options.only] if options.only else TOOLS:
        outcome = check(tool, setting, options.to.absolute(), files=options.files)
        text = json.dumps(dataclasses.asdict(outcome), indent=1)
        (options.to / f"{tool}.json").write_text(text + "\n", encoding="utf-8")
        for problem in outcome.problems:
            print(f"sanitize: {tool} {problem}", file=sys.stderr)
        print(f"sanitize: {tool}: {sum(outcome.launches.values())} launches of {len(outcome.launches)} kernels")
        discontent += bool(outcome.problems)
    return discontent


def write_page(options: argparse.Namespace) -> int:
    """Make the page of what ``run`` left; 1 if a tool's file is missing or says that something is wrong."""
    found = {file.stem: file for folder in options.folders for file in folder.glob("*check.json")}
    missing = [tool for tool in TOOLS if tool not in found]
    if missing:
        print(f"sanitize: no {', '.join(f'{tool}.json' for tool in missing)}: run them first", file=sys.stderr)
        return 1
    read = [json.loads(found[tool].read_text(encoding="utf-8")) for tool in TOOLS]
    outcomes = [Outcome(**{**one, **{name: tuple(one[name]) for name in TUPLES}}) for one in read]
    options.output.write_text(page(outcomes, shared_kernels(BASELINES)), encoding="utf-8")
    return int(any(one.problems for one in outcomes))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the tools")
    running.add_argument("--to", type=Path, required=True, metavar="DIR")
    running.add_argument("--only", choices=TOOLS)
    running.add_argument("--sanitizer", metavar="PATH")
    running.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="for each tool (default 1800)")
    running.add_argument("--option", action="append", default=[], help="one more for compute-sanitizer")
    running.add_argument("--files", nargs="+", default=(), metavar="FILE", help="of the suite (default: all)")
    paging = commands.add_parser("page", help="make the page")
    paging.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    paging.add_argument("--output", type=Path, required=True, metavar="MD")
    options = parser.parse_args(arguments)
    return write_page(options) if options.command == "page" else int(run(options) > 0)


if __name__ == "__main__":
    sys.exit(main())
