"""The page about naive siblings, made from what a run that turned them found.

    pytest --gpuperf example_suite --naive-siblings --siblings-to turned.json
    python example_suite/siblings_report.py --from turned.json --output docs/results/siblings.md

Ends with status 1, the page written all the same, if a pair that should be red is not: one whose code or launch
differs and whose naive workload takes at least 2 % longer.  Without a GPU there is only static evidence, and the page
says how far that goes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pairs import PAIRS, Pair
from recorded import GPU, Difference, Recorded

WORTH_SEEING = 1.02
"""A gain that the gate has to notice the loss of."""
REGRESSIONS = ("WORSE", "SLOWER")
HEADER = """\
# Naive siblings under the gate

What the gate says if an optimised workload of the example suite becomes its naive sibling: code, launch and all, held
against the optimised one's baseline. Gains are naive over optimised as recorded on an {gpu}; *slow of* is what
dominates. Made by

    pytest --gpuperf example_suite --naive-siblings --siblings-to turned.json
    python example_suite/siblings_report.py --from turned.json --output docs/results/siblings.md

{summary}
"""
OTHERS = """
## The same machine code on other data, and callables

Not for a gate of code to see. Where the data differ, what runs is what the baseline has, byte for byte, and a change in
time is put down to the environment or to another workload. A callable launches several kernels and has no machine code
that could be run again: only its times on record speak, and those of another GPU of the model prove nothing.
"""


class BadRun(ValueError):
    """The file is not one that ``--siblings-to`` wrote."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One pair with all that is said of it."""

    pair: Pair
    gain: float | None
    differs_in: Difference
    judgements: Sequence[Mapping[str, Any]]

    @property
    def is_red(self) -> bool:
        return any(judgement["verdict"] in REGRESSIONS for judgement in self.judgements)

    @property
    def must_be_red(self) -> bool:
        return self.is_of_kernels and self.gain is not None and self.gain >= WORTH_SEEING

    @property
    def is_of_kernels(self) -> bool:
        """Whether a kernel or its launch is what is turned."""
        return self.differs_in in ("code", "launch")

    @property
    def was_timed(self) -> bool:
        return any(judgement["kind"] == "time" for judgement in self.judgements)

    @property
    def static(self) -> str:
        """One verdict for all architectures, or each with those that it is about."""
        by_verdict: dict[str, list[str]] = {}
        for judgement in self.judgements:
            if judgement["kind"] == "static":
                by_verdict.setdefault(judgement["verdict"], []).append(judgement["target"])
        if len(by_verdict) == 1:
            return next(iter(by_verdict))
        return ", ".join(f"{verdict} ({', '.join(targets)})" for verdict, targets in by_verdict.items())

    @property
    def time(self) -> str:
        for judgement in self.judgements:
            if judgement["kind"] == "time":
                ratio = (judgement.get("time") or {}).get("ratio")
                return f"{judgement['verdict']}" + (f" x{ratio:.3g}" if ratio else "")
        return "not measured"


def read_run(file: Path, recorded: Recorded, families: Collection[str] = ()) -> list[Row]:
    """A row for every pair of these families, or of all, in the suite's order.  Raises ``BadRun``."""
    pairs = [pair for pair in PAIRS if not families or pair.family in families]
    try:
        lines = json.loads(file.read_text(encoding="utf-8"))["pairs"]
        found = {(line["family"], line["optimised"], line["naive"]): line["judgements"] for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadRun(f"{file} cannot be read as a run of --naive-siblings: {problem!r}") from problem
    missing = [
        pair
        for pair in pairs
        if not found.get((pair.family, pair.optimised, pair.naive))
        and recorded.static(pair, pair.optimised) is not None
    ]  # without a GPU, nothing is said of functions that launch several kernels
    if missing:
        names = ", ".join(f"{pair.family}: {pair.optimised}" for pair in missing)
        raise BadRun(f"{file} has no judgement of {names}: turn all of them, until no test fails by itself")
    return [
        Row(
            pair, recorded.time_ratio(pair), recorded.difference(pair),
            found.get((pair.family, pair.optimised, pair.naive), []),
        )
        for pair in pairs
    ]  # fmt: skip


def document(rows: Sequence[Row]) -> str:
    """The page in Markdown; the same for the same run and the same baselines."""
    page = HEADER.format(gpu=GPU, summary=_summary(rows)) + _table([row for row in rows if row.is_of_kernels])
    return page + OTHERS + _table([row for row in rows if not row.is_of_kernels])


def _summary(rows: Sequence[Row]) -> str:
    due, green = [row for row in rows if row.must_be_red], unnoticed(rows)
    named = "; ".join(f"{row.pair.optimised} ({row.pair.family})" for row in green)
    said = f"{len(due) - len(green)} are red, and not: {named}" if green else "all are red"
    if not any(row.was_timed for row in rows):
        said = f"{sum(row.is_red for row in due)} are red by static evidence alone, without a GPU"
    summary = f"Of {len(due)} pairs that differ in code or launch and gain at least 2 %, {said}."
    unknown = [row for row in rows if row.is_of_kernels and row.gain is None]
    return summary + (f" No gain is on record of {len(unknown)} pairs." if unknown else "")


def unnoticed(rows: Sequence[Row]) -> list[Row]:
    """Pairs that should be red and are not; none if there was no GPU to time them."""
    if not any(row.was_timed for row in rows):
        return []
    return [row for row in rows if row.must_be_red and not row.is_red]


def _table(rows: Sequence[Row]) -> str:
    lines = ["| family | optimised | naive | slow of | gain | static | time | |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        gain = "" if row.gain is None else f"{row.gain:.3g}"
        cells = (
            row.pair.family, row.pair.optimised, row.pair.naive, row.pair.cause or "several things", gain,
            row.static or "none", row.time, "red" if row.is_red else "green",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the page about naive siblings from a run that turned them.")
    parser.add_argument("--from", dest="run", type=Path, required=True, metavar="JSON", help="what --siblings-to wrote")
    parser.add_argument("--output", type=Path, required=True, metavar="MD", help="the page to write")
    parser.add_argument("--families", nargs="+", default=(), metavar="FAMILY", help="that were turned (default: all)")
    chosen = parser.parse_args(arguments)
    try:
        rows = read_run(chosen.run, Recorded(), chosen.families)
    except BadRun as problem:
        print(f"siblings_report: {problem}", file=sys.stderr)
        return 1
    chosen.output.write_text(document(rows), encoding="utf-8")
    green = unnoticed(rows)
    for row in green:
        print(f"siblings_report: not red: {row.pair.optimised} of {row.pair.family}", file=sys.stderr)
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main())
