"""The page about causes: what advice says of every pair of the suite, going from optimised to naive.

    python benchmarks/causes.py --output docs/results/causes.md

Everything is read from the committed baselines: static evidence, times and counters.  Ends with status 1, the page
written all the same, if fewer first causes are right than the project promises.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "example_suite"))
import msgspec
from pages.facts import ARCH, GPU, PAIRS, Pair, Recorded

from pytest_gpuperf.advise.advisor import advise, case_of
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.listing import NO_LISTINGS, Listings
from pytest_gpuperf.explain import Estimates, WorkloadComparison
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import mean_time_ns
from pytest_gpuperf.model.verdict import Advice

PROMISED = {"static": 0.80, "counted": 0.95}
SMS = {GPU: 132}
"""Multiprocessors of the GPU whose counters are on record."""
OTHER_ARCHS = ("sm_80", "sm_120")

HEADER = """\
# Causes named for naive siblings

What [advice](../explanation/why-slower.md) names first when an optimised workload of the example suite becomes its
naive sibling. *True cause* is what `example_suite/pairs.json` says the naive one is slow of; pairs without a single
dominant cause are left out. *By the machine code* uses the static evidence for {arch} and the launch on record, as
a machine without a GPU has both; *by counters* uses what an {gpu} counted. A bold entry is right. Made by

    python benchmarks/causes.py --output docs/results/causes.md

{summary}

A pair that differs in nothing but its data has the same machine code, launched alike: what reads the code cannot tell
its sides apart, and says nothing. These pairs count as missed.

No pair is treated specially, but thresholds and rules were settled with all of these pairs in view: on kernels that
nobody has looked at yet, expect less.

| family | from → to | true cause | by the machine code | by counters |
|---|---|---|---|---|
"""


class Row(NamedTuple):
    """A pair with the cause that advice names first; empty if it names none."""

    pair: Pair
    static: str | None
    """By the machine code; None if there is none: a function that launches several kernels."""
    counted: str | None
    """By counters; None without."""
    data_only: bool


def first(advice: Sequence[Advice]) -> str:
    return advice[0].cause if advice else ""


class Suite:
    """What is committed about the example suite."""

    def __init__(self, root: Path = Path(), listings: Listings = NO_LISTINGS) -> None:
        """``listings`` has the sources of kernels, whose files are told as seen from ``root``."""
        self._recorded = Recorded()
        self._estimates = Estimates(self._recorded.store, {}, CompileCache(), root=root, listings=listings)

    def rows(self, arch: str = ARCH) -> list[Row]:
        """Every pair with a cause."""
        pairs = [pair for pair in PAIRS if pair.cause]
        self._estimates.prepare(one.compared(at) for one, at in (self._comparison(pair, arch) for pair in pairs))
        return [self.row(pair, arch) for pair in pairs]

    def row(self, pair: Pair, arch: str) -> Row:
        was, now = self.without_gpu(pair, arch)
        is_code, counted = was.static is not None and now.static is not None, None
        if arch == ARCH:
            sides = self.sides(pair)
            case = case_of(*sides)
            counted = first(advise(*sides)) if case is not None and case.counted else None
        return Row(
            pair, static=first(advise(was, now)) if is_code else None, counted=counted,
            data_only=is_code and was.same_code(now) and was.launch == now.launch,
        )  # fmt: skip

    def without_gpu(self, pair: Pair, arch: str) -> tuple[Side, Side]:
        """Optimised and naive workload as a machine without a GPU compares them, launched as the tests do."""
        comparison, at = self._comparison(pair, arch)
        was, now = (
            side if side.static is None else msgspec.structs.replace(side, arch=arch, grid=side.static.grid)
            for side in comparison.sides(at)
        )
        return was, now

    def located(self, pair: Pair, arch: str = ARCH) -> list[Advice]:
        """Causes by the machine code alone, with their lines."""
        (was, now), (comparison, at) = self.without_gpu(pair, arch), self._comparison(pair, arch)
        return self._estimates.located(advise(was, now), comparison.compared(at), was, now)

    def sides(self, pair: Pair) -> tuple[Side, Side]:
        """Both workloads with all that a GPU recorded of them."""
        was, now = (
            side if time is None else msgspec.structs.replace(
                side, counters=time.counters, grid=time.grid, sm_count=SMS[GPU],
                time_ns=mean_time_ns(time.rounds), record=time,
            )
            for side, time in ((side, self._recorded.time(pair, name))
                               for side, name in zip(self.without_gpu(pair, ARCH), reversed(pair.names), strict=True))
        )  # fmt: skip
        return was, now

    def _comparison(self, pair: Pair, arch: str) -> tuple[WorkloadComparison, str]:
        """The naive workload under the optimised one's name, so with its baseline; for ``sm_90`` or ``sm_90a``."""
        key, recorded = pair.key(pair.optimised), self._recorded
        static, time = recorded.static(pair, pair.naive, arch), recorded.time(pair, pair.naive)
        at = next((one for one in (arch, f"{arch}a") if recorded.store.compilers(one, key, "")[1:]), arch)
        work = WorkloadEvidence(
            key=key, static={at: static} if static is not None else {}, toolchain="any",
            identity=time.identity if time is not None else None,
        )  # fmt: skip
        return WorkloadComparison(self._estimates, work, (), None), at


def right(rows: Sequence[Row], way: str) -> tuple[int, int]:
    """How many rows name the true cause by their field ``way``, and of how many that have one."""
    named = [getattr(row, way) == row.pair.cause for row in rows if way == "static" or getattr(row, way) is not None]
    return sum(named), len(named)


def page(rows: Sequence[Row], elsewhere: Mapping[str, Sequence[Row]]) -> str:
    """The page in Markdown."""
    by_code, *others, counted = (
        "{} of {} ({:.0%})".format(*found, found[0] / found[1])
        for found in (*(right(each, "static") for each in (rows, *elsewhere.values())), right(rows, "counted"))
    )  # fmt: skip
    also = ", ".join(f"{share} for {arch}" for share, arch in zip(others, elsewhere, strict=True))
    data = sum(row.data_only for row in rows)
    text = f"Named first: the true cause in {by_code} of the pairs by the machine code for {ARCH} ({also}, where some"
    text += f" pairs compile to equally good code), and in {counted} by counters. {data} pairs differ in data alone."
    lines = "".join(f"| {' | '.join(cell.replace('|', '/') for cell in _cells(row))} |\n" for row in rows)
    return HEADER.format(arch=ARCH, gpu="H200", summary=textwrap.fill(text, 120, break_on_hyphens=False)) + lines


def _cells(row: Row) -> Iterator[str]:
    yield from (row.pair.family, f"{row.pair.optimised} → {row.pair.naive}", row.pair.cause)
    for named, silent in ((row.static, "same code" if row.data_only else "nothing"), (row.counted, "nothing")):
        yield "-" if named is None else f"**{named}**" if named == row.pair.cause else named or silent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the page about causes from the committed baselines.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    output = parser.parse_args(arguments).output
    suite = Suite()
    rows = suite.rows()
    output.write_text(page(rows, {arch: suite.rows(arch) for arch in OTHER_ARCHS}), encoding="utf-8")
    for way, promised in PROMISED.items():
        good, of = right(rows, way)
        if good < promised * of:
            print(f"{output}: fewer causes are right than {promised:.0%}: {way}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
