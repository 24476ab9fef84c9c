"""How long does a verdict take?  Wall-clock seconds per workload of the example suite, by how it was judged.

    python benchmarks/verdict_seconds.py --output docs/results/verdict_seconds.md [TEST_FILE...] [-- PYTEST_OPTION...]

Runs the suite three times on this machine's GPU, each in a process of its own (``--run`` picks some): as it is (equal
identity, so rounds alone), with unchanged code paired too (``--gpuperf-all``), and against a copy of the baselines
whose machine code is said to be another, so that every workload is screened and, where the screen cannot tell,
paired.  Seconds are what the plugin notes of each workload: timing and judging, without the test's own check.  Exit
status 1 if a median over the workloads of up to 100 us is above its bound.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.model.result import TestEvidence

ROOT = Path(__file__).parents[1]
SHORT_NS = 100_000.0
BOUNDS_S = {"identity": 0.15, "screen": 0.2, "paired": 0.4}
"""Median seconds of a workload of up to 100 us, by how it was judged."""
RUNS = ("unchanged", "paired", "changed")
OTHER_CODE = "0" * 64
_CODE = re.compile(rb'("(?:code_hash|source_hash|code|source)": ")[0-9a-f]{64}')
"""Hashes in a static record, and in one of times; what a cubin is filed under stays."""


class Collector:
    """Notes seconds and method of every timed workload of a run in a JSON file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        evidence = getattr(report, "gpuperf", None)
        if evidence is None:
            return
        for work in msgspec.json.decode(evidence, type=TestEvidence).workloads:
            times = [one for one in work.judgements if one.kind == "time" and one.time is not None]
            for judgement in times:
                self._found.append(
                    {"workload": str(work.key), "seconds": work.seconds, "method": judgement.time.method,
                     "verdict": judgement.verdict.value, "time_ns": judgement.time.after_ns,
                     "blocks": judgement.time.blocks}
                )  # fmt: skip

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._found), encoding="utf-8")


def measure(arguments: Sequence[str], folder: Path, name: str) -> tuple[list[dict[str, Any]], int]:
    """One run of pytest in a fresh process: what it found, and its exit status."""
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)  # what an earlier run left is not what this one found
    command = [sys.executable, __file__, "--collect-to", str(file), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not file.exists():
        raise SystemExit(f"the run {name} left nothing:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return json.loads(file.read_text(encoding="utf-8")), done.returncode


def as_if_changed(baselines: Path, copy: Path) -> None:
    """Copy baselines and say that every workload had another source and machine code; the code and its figures stay.

    The static record says so, too, as it would after a change: a cubin whose static evidence is on record need not be
    disassembled before it runs again, and a source that is on record would be compiled again for the code on record.
    """
    for file in (one for one in baselines.rglob("*") if one.is_file()):
        target = copy / file.relative_to(baselines)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        if file.suffix == ".json":
            content = _CODE.sub(rb"\g<1>" + OTHER_CODE.encode(), content)
        target.write_bytes(content)


def table(found: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Lines of Markdown by method and length, and the bounds that are broken."""
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = defaultdict(list)
    for one in found:
        groups[one["method"], one["time_ns"] <= SHORT_NS].append(one)
    lines = ["| judged by | workloads of | number | median s | 90 % within s | most s |", "|---|---|---|---|---|---|"]
    broken = []
    for (method, short), several in sorted(groups.items(), key=lambda item: (item[0][0], not item[0][1])):
        seconds = sorted(one["seconds"] for one in several)
        median, most = statistics.median(seconds), seconds[min(len(seconds) - 1, int(0.9 * len(seconds)))]
        length = "up to 100 us" if short else "more than 100 us"
        lines.append(f"| {method} | {length} | {len(seconds)} | {median:.2f} | {most:.2f} | {seconds[-1]:.2f} |")
        if short and median > BOUNDS_S.get(method, float("inf")):
            broken.append(f"{method}: median {median:.2f} s, at most {BOUNDS_S[method]} s wanted")
    return lines, broken


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """This program's own words, and those behind ``--``, which are pytest's."""
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the page to this file")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave what each run found in this folder, as JSON")
    parser.add_argument("--run", action="append", choices=RUNS, help="this run alone, or several of them")
    parser.add_argument("--collect-to", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="*", default=["example_suite"], metavar="TEST_FILE")
    given, passed = split(sys.argv[1:])
    options = parser.parse_args(given)
    if options.collect_to is not None:
        command = ["-q", "-p", "no:cacheprovider", "--gpuperf", *passed, *options.tests]
        return int(pytest.main(command, plugins=[Collector(options.collect_to)]))
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    tests = [*options.tests, "--", *passed]
    pages, broken = ["# Seconds per verdict\n"], []
    runs = list(dict.fromkeys(options.run or RUNS))
    picked = [f"--run={run}" for run in runs if options.run]
    named = "".join(f" {word}" for word in [*picked, *(options.tests if options.tests != ["example_suite"] else ())])
    pages.append(f"Made by `python benchmarks/verdict_seconds.py{named}`.\n")
    with tempfile.TemporaryDirectory(prefix="gpuperf-seconds-") as name:
        folder = Path(name)
        as_if_changed(ROOT / "baselines", folder / "changed")
        more = {
            "unchanged": ("Unchanged code", []),
            "paired": ("Unchanged code, paired too (`--gpuperf-all`)", ["--gpuperf-all"]),
            "changed": ("Code said to be another", [f"--gpuperf-baselines={folder / 'changed'}"]),
        }
        for run in runs:
            title, arguments = more[run]
            found, status = measure([*tests, *arguments], options.keep or folder, f"seconds-{run}")
            lines, wrong = table(found)
            page = [f"\n## {title}\n", *lines, f"\nExit status {status}.\n"]
            print("\n".join(page), flush=True)  # a run that is cut short has told what it knew
            pages += page
            broken += wrong
    pages.append("\n" + ("\n".join(f"BROKEN: {text}" for text in broken) or "All bounds hold.") + "\n")
    print(pages[-1])
    text = "\n".join(pages)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
