"""Two builds of files in the rows of a difference (``diff_rows``): what got worse first, by file and kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.layout import arch_order
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict
from pytest_gpuperf.report.diff import LONGEST_TEXT, NAMED, DiffRow, KernelDiff, ModuleDiff
from pytest_gpuperf.report.order import shortened

MOST_KERNELS, MOST_IN_FILE = 8, 1000
"""Of a file, that have rows on a screen and in Markdown."""
LONGEST_NAME = 98
"""Columns of a kernel's name, whose middle goes."""
MOST_CHARACTERS = 8192
MOST_OTHERS = 3
"""Figures that do not gate, after those that do."""

Names = Mapping[str, str]
"""Of kernels for people, by symbol."""


def modules_of(judgements: Iterable[Judgement], names: Names, most: int) -> list[ModuleDiff]:
    """Kernels that got worse or better, so many of a file; files that say the same of all of them are one."""
    by_file: dict[str, list[Judgement]] = defaultdict(list)
    for one in judgements:
        if one.verdict in (Verdict.WORSE, Verdict.BETTER):
            by_file[one.key.module].append(one)
    alike: dict[tuple[KernelDiff, ...], list[str]] = defaultdict(list)
    for file in sorted(by_file):
        alike[tuple(_kernels(by_file[file], names, most))].append(quoted(file, LONGEST_TEXT))
    return [
        ModuleDiff(f"{files[0]} and {len(files) - 1} alike" if files[1:] else files[0], kernels)
        for kernels, files in alike.items()
    ]


def _kernels(judgements: Iterable[Judgement], names: Names, most: int) -> list[KernelDiff]:
    """The worst first, and how many more there are."""
    by_symbol: dict[str, list[Judgement]] = defaultdict(list)
    for one in sorted(judgements, key=_rank):
        by_symbol[one.key.workload].append(one)
    shown = [*by_symbol.items()][:most]
    found = [KernelDiff(short_name(names[symbol]), tuple(_rows(several))) for symbol, several in shown]
    rest = len(by_symbol) - len(shown)
    more = DiffRow("not shown", "", "--markdown FILE names them")
    return [*found, KernelDiff(f"{numbered(rest, 'kernel')} more", (more,))] if rest else found


def _rows(several: Iterable[Judgement]) -> list[DiffRow]:
    """One for each distinct change of what gates, with its architectures and the words of the first of them."""
    alike: dict[tuple[str, ...], list[Judgement]] = defaultdict(list)
    for one in sorted(several, key=lambda one: arch_order(one.target)):
        told = (one.verdict.value, *_gating(one.changes))
        alike[told].append(one)
    return [
        DiffRow(verdict, ", ".join(dict.fromkeys(one.target for one in those)), _words(those[0].changes))
        for (verdict, *_), those in alike.items()
    ]


def _gating(changes: Iterable[Change]) -> list[str]:
    """What gates in a change; of instructions whether there are any, since every architecture has its own count."""
    return [
        change.what if change.what.startswith("instructions") else str(change)
        for change in changes
        if change.direction != "neutral"
    ]


def _words(changes: Iterable[Change]) -> str:
    """What gates, then the rest behind ``also``."""
    gating = [str(change) for change in changes if change.direction != "neutral"]
    others = [str(change) for change in changes if change.direction == "neutral"]
    also = f"; also {first_of(others, MOST_OTHERS, ',')}" if others else ""
    return ", ".join(gating) + also


def _rank(one: Judgement) -> tuple[bool, float, str]:
    """What got worse first: how much stack was added, then how much occupancy was lost."""
    grown = {change.what: float(change.after) - float(change.before) for change in one.changes}
    weight = 1000 * grown.get("stack frame", 0.0) - grown.get("occupancy", 0.0)
    return one.verdict is not Verdict.WORSE, -weight, one.key.workload


def short_name(name: str) -> str:
    """The name of a kernel in a line."""
    return shortened(quoted(name, MOST_CHARACTERS), LONGEST_NAME)


def listed(word: str, names: Iterable[str]) -> list[str]:
    """``3 kernels new: a, b, c``, in a list; an empty one without any."""
    distinct = list(dict.fromkeys(names))
    return [f"{numbered(len(distinct), 'kernel')} {word}: {first_of(distinct, NAMED)}"] if distinct else []
