"""The page about lines: does advice find the line of a cause, and does line information leave machine code alone?

    python benchmarks/lines.py --output docs/results/lines.md

Runs the example suite without a GPU to learn what it compiles.  The right lines, by their text, are in ``lines.json``.
Ends with status 1, the page written all the same, if fewer lines are right than the project promises, or if machine
code differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from causes import OTHER_ARCHS, Suite
from pages.facts import ARCH, PAIRS, SUITE, Pair, Recorded

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.listing import Listing
from pytest_gpuperf.compile.source import LINE_INFO
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.stash import run_of

ROOT = SUITE.parent
PROMISED = 0.9
MOST_FORMS = 8
"""Compilations until a kernel of which NVRTC makes two forms has the wanted one: it is not deterministic."""
HEADER = """\
# Lines named for naive siblings

Which line [advice](../explanation/why-slower.md) names with its first cause, without a GPU, for {arch}, when an
optimised workload of the example suite becomes its naive sibling. The pairs are those whose machine code differs and
whose cause lies in single lines; `benchmarks/lines.json` has the lines that are right, found by reading the kernels.
Made by

    python benchmarks/lines.py --output docs/results/lines.md

{summary}

| family | from → to | line named | right |
|---|---|---|---|
"""


class Truth(msgspec.Struct, forbid_unknown_fields=True):
    """Right lines of pairs of one family: any of them will do."""

    family: str
    optimised: list[str]
    lines: list[str]
    """Text without indentation; one that occurs several times has the line before it in front."""


TRUTHS = msgspec.json.decode(Path(__file__).with_name("lines.json").read_bytes(), type=list[Truth])


class Row(NamedTuple):
    """A pair, with the place that advice names first; empty if it names none."""

    pair: Pair
    place: str
    right: bool


class Compiled:
    """A plugin of pytest that keeps what a run compiles."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str, str], tuple[StaticRecord, Listing]] = {}
        """By architecture, code hash and symbol."""
        self._tests: list[TestEvidence] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if hasattr(report, "gpuperf"):
            self._tests.append(msgspec.json.decode(report.gpuperf, type=TestEvidence))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        listings = run_of(session.config).listings
        for arch, record in (one for test in self._tests for work in test.workloads for one in work.static.items()):
            symbol = record.symbol or record.kernel
            if listing := listings.get((record.cubin, symbol)):
                self.records[arch, record.profile.code_hash, symbol] = record, listing


def differing(compiled: Compiled, cache: CompileCache) -> Iterator[str]:
    """Kernels that have another code hash with line information; compiled anew, where NVRTC makes several forms."""
    for (arch, _, _), (record, listing) in compiled.records.items():
        source = listing.source
        lined = dataclasses.replace(source, options=(*source.options, LINE_INFO))
        tries = (
            {compile_kernel(one, arch, cache=kept).profile.code_hash for one in (source, lined)}
            for kept in (cache, *[None] * MOST_FORMS)
        )
        if all(len(hashes) > 1 for hashes in tries):
            yield f"{record.kernel} for {arch}"


def rows_of(compiled: Compiled, arch: str = ARCH) -> Iterator[Row]:
    """Every pair of ``lines.json``."""
    recorded, listings = Recorded(), {}
    for record, symbol in (
        (record, record.symbol or record.kernel)
        for pair in PAIRS
        if (record := recorded.static(pair, pair.naive, arch)) is not None
    ):
        if found := compiled.records.get((arch, record.profile.code_hash, symbol)):
            listings[record.cubin, symbol] = found[1]
    suite = Suite(ROOT, listings)
    right = {(truth.family, name): truth.lines for truth in TRUTHS for name in truth.optimised}
    for pair in PAIRS:
        if (lines := right.get((pair.family, pair.optimised))) is not None:
            first = next(iter(suite.located(pair, arch)), None)
            if first is None or not first.line:
                yield Row(pair, "", right=False)
                continue
            text = [line.strip() for line in (ROOT / first.file).read_text(encoding="utf-8").splitlines()]
            own, before = text[first.line - 1], text[first.line - 2]
            place = first.place.removeprefix(f"{SUITE.name}/kernels/")
            yield Row(pair, place, own in lines or f"{before}\n{own}" in lines)


def page(rows: Sequence[Row], elsewhere: Mapping[str, Sequence[Row]], kernels: int, others: Sequence[str]) -> str:
    """The page in Markdown; ``others`` of the ``kernels`` have other machine code with line information."""
    good = sum(row.right for row in rows)
    also = ", ".join(f"{sum(row.right for row in found)} for {arch}" for arch, found in elsewhere.items())
    summary = (
        f"The line is right in {good} of {len(rows)} pairs ({good / len(rows):.0%}; {also}). Of {kernels} kernels that "
        f"the suite compiles for all of its architectures, {kernels - len(others)} have the same code hash with line "
        f"information as without. {', '.join(others)}"
    )
    text = HEADER.format(arch=ARCH, summary=textwrap.fill(summary.strip(), 120, break_on_hyphens=False))
    for pair, place, right in rows:
        cells = pair.family, f"{pair.optimised} → {pair.naive}", place or "none", "yes" if right else "no"
        text += f"| {' | '.join(cells)} |\n"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the page about lines.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    output, compiled = parser.parse_args(arguments).output, Compiled()
    quiet = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    pytest.main(["--gpuperf", *quiet, f"--rootdir={ROOT}", str(SUITE)], [compiled])
    rows, others = list(rows_of(compiled)), list(differing(compiled, CompileCache()))
    elsewhere = {arch: list(rows_of(compiled, arch)) for arch in OTHER_ARCHS}
    output.write_text(page(rows, elsewhere, len(compiled.records), others), encoding="utf-8")
    return int(bool(others) or sum(row.right for row in rows) < PROMISED * len(rows))


if __name__ == "__main__":
    sys.exit(main())
