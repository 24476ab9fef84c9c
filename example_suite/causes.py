"""The page about causes: what advice says of every pair of the suite, going from optimised to naive.

    python example_suite/causes.py --output docs/results/causes.md

Everything is read from the committed baselines: static evidence, times and counters.  Ends with status 1, the page
written all the same, if fewer first causes are right than the project promises.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from pairs import PAIRS, Pair
from recorded import ARCH, BASELINES, GPU, Recorded

from pytest_gpuperf.advise.advisor import advise, case_of
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.explain import VersionPair
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import Advice
from pytest_gpuperf.model.warp_estimate import WarpEstimate

PROMISED_STATIC = 0.80
PROMISED_COUNTED = 0.95
SMS = {GPU: 132}
"""Multiprocessors of the GPU whose counters are on record."""
OTHER_ARCHS = ("sm_80", "sm_120")

HEADER = """\
# Causes named for naive siblings

What [advice](../explanation/why-slower.md) names first when an optimised workload of the example suite becomes its
naive sibling. *True cause* is what `example_suite/pairs.py` says the naive one is slow of; pairs without a single
dominant cause are left out. *By the machine code* uses the static evidence for {arch} and the launch on record, as
a machine without a GPU has both; *by counters* uses what an {gpu} counted. A bold entry is right. Made by

    python example_suite/causes.py --output docs/results/causes.md

{summary}

A pair that differs in nothing but its data has the same machine code, launched alike: what reads the code cannot tell
its sides apart, and says nothing. These pairs count as missed.

No pair is treated specially, but thresholds and rules were settled with all of these pairs in view: on kernels that
nobody has looked at yet, expect less.

| family | from → to | true cause | by the machine code | by counters |
|---|---|---|---|---|
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One pair with what advice says of it."""

    pair: Pair
    static: tuple[Advice, ...] | None
    """By the machine code; None if there is none: a function that launches several kernels."""
    counted: tuple[Advice, ...] | None
    """By counters; None without."""
    data_only: bool

    @property
    def static_right(self) -> bool:
        return first(self.static) == self.pair.cause

    @property
    def counted_right(self) -> bool:
        return first(self.counted) == self.pair.cause


def first(advice: Sequence[Advice] | None) -> str:
    """The cause named first; empty if none is."""
    return advice[0].cause if advice else ""


class Suite:
    """What is committed about the example suite."""

    def __init__(self, baselines: Path = BASELINES) -> None:
        self._recorded = Recorded(baselines)

    def rows(self, arch: str = ARCH, pairs: Sequence[Pair] = PAIRS) -> list[Row]:
        """Every pair with a cause."""
        self._recorded.prepare_estimates(self._compared(pair, arch) for pair in pairs if pair.cause)
        return [self.row(pair, arch) for pair in pairs if pair.cause]

    def row(self, pair: Pair, arch: str) -> Row:
        bare = self.without_gpu(pair, arch)
        return Row(
            pair,
            static=advise(*bare) if bare is not None else None,
            counted=self.counted(pair) if arch == ARCH else None,
            data_only=bare is not None and bare[0].same_code(bare[1]) and bare[0].launch == bare[1].launch,
        )

    def without_gpu(self, pair: Pair, arch: str = ARCH) -> tuple[Side, Side] | None:
        """Both workloads as a machine without a GPU compares them: machine code, and how the tests launch it.

        The naive one is the candidate, whose arguments are known; None if there is no machine code of one.
        """
        compared = self._compared(pair, arch)
        if compared.old is None or compared.new is None:
            return None
        was, now = (
            Side(arch=arch, static=static, estimate=estimate, grid=self._recorded.grid(pair, name, arch))
            for static, estimate, name in self._versions(pair, compared)
        )
        return was, now

    def _compared(self, pair: Pair, arch: str) -> VersionPair:
        """Both, as ``WorkloadComparison.compared`` has them: with the naive workload's arguments."""
        was, now = (self._recorded.static(pair, name, arch) for name in (pair.optimised, pair.naive))
        own, grid = self._recorded.launch(pair, pair.naive), self._recorded.grid(pair, pair.optimised, arch)
        if own is None or now is None or now.block != own.block or was is None or was.block is None or grid is None:
            return VersionPair(arch, was, now)
        if was.profile.code_hash == now.profile.code_hash:
            return VersionPair(arch, was, now, (own, own) if was.block == now.block else (None, None))
        return VersionPair(arch, was, now, (own._replace(grid=grid, block=was.block), own))

    def _versions(
        self, pair: Pair, compared: VersionPair
    ) -> Iterator[tuple[StaticRecord | None, WarpEstimate | None, str]]:
        """Record, estimate and name of the workload, of both."""
        records = compared.old, compared.new
        yield from zip(records, self._recorded.estimates(compared), (pair.optimised, pair.naive), strict=True)

    def counted(self, pair: Pair) -> tuple[Advice, ...] | None:
        """Causes by counters; None without."""
        sides = self.sides(pair)
        case = case_of(*sides)
        return advise(*sides) if case is not None and case.counted else None

    def sides(self, pair: Pair) -> tuple[Side, Side]:
        """Both workloads with all that a GPU told of them."""
        was, now = (self._side(pair, *each) for each in self._versions(pair, self._compared(pair, ARCH)))
        return was, now

    def _side(self, pair: Pair, static: StaticRecord | None, estimate: WarpEstimate | None, name: str) -> Side:
        time = self._recorded.time(pair, name)
        if time is None:
            return Side(arch=ARCH, static=static, estimate=estimate)
        return Side(
            arch=ARCH, static=static, estimate=estimate, counters=time.counters, grid=time.grid, block=time.block,
            sm_count=SMS[GPU], time_ns=self._recorded.time_ns(pair, name), bytes=time.bytes, flops=time.flops,
        )  # fmt: skip


def share(right: int, of: int) -> str:
    return f"{right} of {of} ({right / of:.0%})" if of else "none"


def page(rows: Sequence[Row], elsewhere: dict[str, list[Row]]) -> str:
    """The page in Markdown."""
    lines = [_line(row) for row in rows]
    counted = [row for row in rows if row.counted is not None]
    right = share(sum(row.static_right for row in rows), len(rows))
    parts = [f"Named first: the true cause in {right} of the pairs by the machine code for {ARCH}"]
    parts += [f"{share(sum(row.static_right for row in other), len(other))} for {arch}"
              for arch, other in elsewhere.items()]  # fmt: skip
    text = f"{parts[0]} ({', '.join(parts[1:])}, where some pairs compile to equally good code)"
    if counted:
        text += f", and in {share(sum(row.counted_right for row in counted), len(counted))} by counters"
    text += f". {sum(row.data_only for row in rows)} pairs differ in data alone."
    return HEADER.format(arch=ARCH, gpu="H200", summary=_wrapped(text)) + "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    pair = row.pair
    cells = [pair.family, f"{pair.optimised} → {pair.naive}", pair.cause,
             _cell(row.static, pair.cause, "same code" if row.data_only else "nothing"),
             _cell(row.counted, pair.cause, "nothing")]  # fmt: skip
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _cell(advice: Sequence[Advice] | None, true: str, silent: str) -> str:
    if advice is None:
        return "-"
    if not advice:
        return silent
    named = first(advice)
    return f"**{named}**" if named == true else named


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the page about causes from the committed baselines.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--baselines", type=Path, default=BASELINES, metavar="DIR")
    parsed = parser.parse_args(arguments)
    suite = Suite(parsed.baselines)
    rows = suite.rows()
    parsed.output.write_text(page(rows, {arch: suite.rows(arch) for arch in OTHER_ARCHS}), encoding="utf-8")
    counted = [row for row in rows if row.counted is not None]
    kept = sum(row.static_right for row in rows) >= PROMISED_STATIC * len(rows)
    kept = kept and sum(row.counted_right for row in counted) >= PROMISED_COUNTED * len(counted)
    if not kept:
        sys.stderr.write(f"{parsed.output}: fewer causes are right than {PROMISED_STATIC:.0%} by the machine code and "
                         f"{PROMISED_COUNTED:.0%} by counters\n")  # fmt: skip
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
