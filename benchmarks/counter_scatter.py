"""How far do counters of equal code differ from run to run, and from GPU to GPU?

    pytest --gpuperf-ncu --gpuperf-report=1.json example_suite          # as often as you like, on any GPU of a model
    python benchmarks/counter_scatter.py 1.json 2.json ... --output docs/results/counters.md

Every workload of every file is held against the first file that has it with the same machine code, launch
and arguments.  Ends with status 1 if an exact counter differs, or another one by more than its band.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from record_claim_counters import counters_in

from pytest_gpuperf.counters.catalogue import METRICS, TRAFFIC
from pytest_gpuperf.judge.counters import Metric

HEADER = """\
# Counters of equal code

From run to run and from GPU to GPU. Made by

    pytest --gpuperf-ncu[=SET] --gpuperf-report=FILE.json example_suite
    python benchmarks/counter_scatter.py FILE... --output docs/results/counters.md

{files} files of {gpus} GPUs ({models}), {workloads} workloads, {comparisons} comparisons of two runs of one.
Exact counters: {exact} compared, {differing} differ. The others, whose bands and floors are those of
[the gate](../how-to/counters.md#the-gate); a warm workload's traffic is compared where both runs took as many passes:

| metric | compared how | compared | differ | by at most | and | beyond the band |
|---|---|---|---|---|---|---|
"""


@dataclasses.dataclass
class Scatter:
    """What became of one metric's comparisons."""

    compared: int = 0
    differ: int = 0
    share: float = 0.0
    """Largest relative difference among those that are above the floor."""
    amount: float = 0.0
    """Largest absolute one."""
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


def comparisons(documents: Sequence[dict[str, Any]]) -> Iterable[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each workload with the first one of its name, code and launch."""
    first: dict[tuple[str, ...], dict[str, Any]] = {}
    for document in documents:
        for node, works in document["workloads"].items():
            for name, work in works.items():
                if not work["counters"]:
                    continue
                same = node, name, work["code"], work["launch"], *work.get("arguments", ())
                known = first.setdefault(same, work)
                if known is not work:
                    yield f"{node} [{name}]", known, work


def scatter_of(documents: Sequence[dict[str, Any]]) -> tuple[dict[str, Scatter], int]:
    """By metric, and the number of comparisons."""
    gating = [metric for metric in METRICS.values() if metric.tolerance is not None]
    found = {metric.name: Scatter() for metric in gating}
    number = 0
    for where, before, after in comparisons(documents):
        number += 1
        old, new = before["counters"], after["counters"]
        warm = after["cache"] == "warm"
        for metric in gating:
            if metric.name in old and metric.name in new and not (warm and metric.name.startswith(TRAFFIC)):
                found[metric.name].add(metric, old[metric.name], new[metric.name], where)
    return found, number


def page(documents: Sequence[dict[str, Any]], found: dict[str, Scatter], number: int) -> str:
    workloads = {(node, name) for one in documents for node, works in one["workloads"].items() for name in works}
    exact = [found[name] for name, metric in METRICS.items() if name in found and metric.klass == "exact"]
    text = HEADER.format(
        files=len(documents), gpus=len({document.get("uuid", "") for document in documents}),
        models=", ".join(sorted({str(document["gpu"]) for document in documents})),
        workloads=len(workloads), comparisons=number,
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
    parser.add_argument("--output", type=Path, metavar="MD")
    options = parser.parse_args(arguments)
    documents = [counters_in(file) for file in options.files]
    found, number = scatter_of(documents)
    if not number:
        print("counter_scatter: no workload is in two of the files with the same code and launch", file=sys.stderr)
        return 1
    text = page(documents, found, number)
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    beyond_band = [line for one in found.values() for line in one.beyond]
    for line in beyond_band:
        print(f"counter_scatter: {line}", file=sys.stderr)
    return int(bool(beyond_band))


if __name__ == "__main__":
    sys.exit(main())
