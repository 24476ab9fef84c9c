"""Keep the counters that the example suite's claims are about, for tests that replay them without a GPU.

    pytest --gpuperf-ncu=$(python example_suite/hopper_metrics.py) --gpuperf-report=counters.json example_suite
    python benchmarks/record_claim_counters.py counters.json --ncu "$(ncu --version | tail -1)"

The first command needs a GPU, ncu and the right to read counters; it may be given in parts (``example_suite/test_a*``)
that are recorded together: ``record_claim_counters.py part1.json part2.json``; with ``--keep`` the tests of which they
say nothing keep what is on record.  Of every workload, the metrics that ``example_suite/counters.py`` names are kept:
counts exactly, all else (shares, ratios) to six significant digits.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "example_suite"
FOLDER = ROOT / "tests" / "replays" / "counters"

Counters = Mapping[str, float]
Workloads = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By test and workload; the figures under ``counters``."""


class BadCounters(ValueError):
    """The files are no counters of one suite on one kind of GPU."""


def counters_in(file: Path) -> dict[str, Any]:
    """``gpu``, its ``uuid`` and the counted ``workloads`` of a report.  Raises ``BadCounters``."""
    found: dict[str, Any] = {"gpu": "", "uuid": "", "workloads": {}}
    try:
        for test in json.loads(file.read_text(encoding="utf-8"))["tests"]:
            works = [work for work in test.get("workloads", ()) if work.get("counters")]
            of_test = {work["key"]["workload"]: {**work.get("identity", {}), **work} for work in works}
            if of_test:
                found["workloads"][f"{test['module']}::{test['test']}"] = of_test
                found |= {"gpu": test["device"]["slug"], "uuid": test["device"]["uuid"]}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadCounters(f"{file} is not what --gpuperf-report writes: {problem!r}") from problem
    if not found["workloads"]:
        raise BadCounters(f"{file} has no counters")
    return found


def merged(files: Iterable[Path]) -> dict[str, Any]:
    """One document of all parts.  Raises ``BadCounters``."""
    parts = [counters_in(file) for file in files]
    if len(sources := {part["gpu"] for part in parts}) != 1:
        raise BadCounters(f"the parts are from different GPUs: {sorted(sources)}")
    return {**parts[0], "workloads": {test: of for part in parts for test, of in part["workloads"].items()}}


def on_record(file: Path) -> dict[str, Any]:
    """The workloads of a file that ``text_of`` made.  Raises ``BadCounters``."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        metrics = document["metrics"]
        return {
            test: {name: {"counters": dict(zip(metrics, row, strict=True))} for name, row in of.items()}
            for test, of in document["workloads"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BadCounters(f"{file} has nothing to keep: {problem!r}") from problem


def kept(value: float | None) -> float | int | None:
    """Counts as they are; other figures to six significant digits."""
    if value is None or not math.isfinite(value):
        return None
    value = float(value)
    rounded = value if value.is_integer() else float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def text_of(gpu: str, ncu: str, metrics: Sequence[str], workloads: Workloads) -> str:
    """A line per workload: its figures, in the order of ``metrics``; ``null`` for what ncu had no value for."""
    lines = []
    for test in sorted(workloads):
        of_test = [
            f"   {json.dumps(name)}: {json.dumps([kept(one['counters'].get(metric)) for metric in metrics])}"
            for name, one in workloads[test].items()
        ]
        lines.append(f"  {json.dumps(test)}: {{\n" + ",\n".join(of_test) + "\n  }")
    head = f'{{\n "gpu": {json.dumps(gpu)},\n "ncu": {json.dumps(ncu)},\n "metrics": {json.dumps(list(metrics))},\n'
    return head + ' "workloads": {\n' + ",\n".join(lines) + "\n }\n}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Keep the counters that the example suite's claims are about.")
    parser.add_argument("files", nargs="+", type=Path, metavar="JSON", help="a JSON report of the suite")
    parser.add_argument("--ncu", required=True, metavar="VERSION", help="of the ncu that counted")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="default: tests/replays/counters")
    parser.add_argument("--keep", action="store_true", help="keep what is on record of tests that these files lack")
    chosen = parser.parse_args(arguments)
    sys.path.insert(0, str(SUITE))
    metrics = sorted(importlib.import_module("counters").METRICS)
    try:
        found = merged(chosen.files)
        file = chosen.to / f"{found['gpu']}.json"
        workloads = {**(on_record(file) if chosen.keep else {}), **found["workloads"]}
    except BadCounters as problem:
        print(f"record_claim_counters: {problem}", file=sys.stderr)
        return 1
    file.write_text(text_of(found["gpu"], chosen.ncu, metrics, workloads), encoding="utf-8")
    print(f"{file}: {len(metrics)} metrics of {sum(map(len, workloads.values()))} workloads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
