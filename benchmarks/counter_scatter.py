"""How far do counters of equal code differ from run to run, and from GPU to GPU?

    pytest --gpuperf-ncu --gpuperf-report=1.json example_suite          # as often as you like, on any GPU of a model
    python benchmarks/counter_scatter.py 1.json 2.json ... > docs/results/counters.md

Every workload is compared with the first one of the same test, machine code, launch and arguments.  Exit status 1 if an
exact counter differs, or another one by more than its band.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pytest_gpuperf.counters.catalogue import METRICS, TRAFFIC
from pytest_gpuperf.judge.counters import Metric

PAGE = """\
# Counters of equal code

From run to run and from GPU to GPU. Made by

    pytest --gpuperf-ncu[=SET] --gpuperf-report=FILE.json example_suite
    python benchmarks/counter_scatter.py FILE... > docs/results/counters.md

{files} files of {gpus} GPUs ({models}), {workloads} workloads, {comparisons} comparisons of two runs of one.
Exact counters: {exact} compared, {differing} differ. The others have the bands and floors of
[the gate](../how-to/counters.md#the-gate):

| metric | compared how | compared | differ | by at most | and | beyond the band |
|---|---|---|---|---|---|---|
"""


@dataclasses.dataclass
class Scatter:
    """What became of one metric's comparisons."""

    compared: int = 0
    differ: int = 0
    share: float = 0.0
    """Largest relative difference above the floor."""
    amount: float = 0.0
    """Largest absolute difference."""
    beyond: list[str] = dataclasses.field(default_factory=list)

    def add(self, metric: Metric, before: float, after: float, where: str) -> None:
        self.compared += 1
        difference = abs(after - before)
        self.differ += difference > 0
        self.amount = max(self.amount, difference)
        if difference > metric.floor and before:
            self.share = max(self.share, difference / abs(before))
        if metric.beyond(before, after):
            self.beyond.append(f"{where}: {metric.what} {before:.10g} -> {after:.10g}")


Counted = tuple[str, str, dict[str, Any], dict[str, str]]
"""A test, a workload's name, what the report has of it, and the GPU."""


def counted_in(file: Path) -> list[Counted]:
    """The counted workloads of a report."""
    return [
        (f"{test['module']}::{test['test']}", work["key"]["workload"], work, test["device"])
        for test in json.loads(file.read_text(encoding="utf-8"))["tests"]
        for work in test.get("workloads", ()) if work.get("counters")
    ]  # fmt: skip


def scatter_of(counted: Iterable[Counted]) -> tuple[dict[str, Scatter], int]:
    """By metric, and the number of comparisons."""
    found = {metric.name: Scatter() for metric in METRICS.values() if metric.tolerance is not None}
    first, number = dict[tuple[str, ...], dict[str, float]](), 0
    for test, name, work, _ in counted:
        own, new = work.get("identity", {}), work["counters"]
        old = first.setdefault((test, name, own["code"], own["launch"], *own.get("arguments", ())), new)
        number += old is not new
        for metric in found if old is not new else ():
            if metric in old and metric in new and not (work["cache"] == "warm" and metric.startswith(TRAFFIC)):
                found[metric].add(METRICS[metric], old[metric], new[metric], f"{test} [{name}]")
    return found, number


def page(files: int, counted: Sequence[Counted], found: dict[str, Scatter], number: int) -> str:
    exact = [one for name, one in found.items() if METRICS[name].klass == "exact"]
    text = PAGE.format(
        files=files, gpus=len({gpu["uuid"] for *_, gpu in counted}),
        models=", ".join(sorted({gpu["slug"] for *_, gpu in counted})),
        workloads=len({(test, name) for test, name, *_ in counted}), comparisons=number,
        exact=sum(one.compared for one in exact), differing=sum(one.differ for one in exact),
    )  # fmt: skip
    for name, one in found.items():
        metric = METRICS[name]
        if metric.klass != "exact" and one.compared:
            band = f"to {metric.tolerance or 0:.0%} and {metric.floor:,.0f} {metric.unit}"
            most = f"{one.share:.2%} above the floor | {one.amount:,.0f} {metric.unit}"
            text += f"| {metric.what} | {band} | {one.compared} | {one.differ} | {most} | {len(one.beyond)} |\n"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON reports of runs that counted")
    options = parser.parse_args(arguments)
    counted = [one for file in options.files for one in counted_in(file)]
    found, number = scatter_of(counted)
    print(page(len(options.files), counted, found, number), end="")
    beyond = [line for one in found.values() for line in one.beyond]
    beyond += [] if number else ["no workload is in two of the files with the same code and launch"]
    print(*beyond, sep="\n", file=sys.stderr)
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main())
