"""Tables of a kernel's counters as a profiler shows them, of baseline and candidate, out of ``sections.json``.

Sections and rows have the words of Nsight Compute.  A row is one metric, or what follows from several of one run:
sectors per request, the share of the cycles without an eligible warp.  What moved most comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.formatting import percent, quantity
from pytest_gpuperf.model.evidence import Record

Counters = Mapping[str, float]
"""By canonical name."""
NONE = "-"
MOVED = 0.05
"""A row that moved by this part of the whole, or more, stands out."""


class SectionRow(Record, frozen=True):
    """A row: ``base + scale * (sum - less) / per``, of metrics by canonical name, which are added up."""

    what: str
    """As Nsight Compute calls it."""
    sum: tuple[str, ...]
    unit: str = ""
    less: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    scale: float = 1.0
    base: float = 0.0
    part_of: str = ""
    """The metric that it is a part of: stalls are parts of the cycles of an instruction."""

    @property
    def metrics(self) -> tuple[str, ...]:
        return (*self.sum, *self.less, *self.per)

    def of(self, counters: Counters) -> float | None:
        """None where a metric was not collected, or there is nothing to divide by."""
        if not all(name in counters for name in self.metrics):
            return None
        amount, less, per = (sum(counters[name] for name in names) for names in (self.sum, self.less, self.per))
        if self.per and not per:
            return None
        return self.base + self.scale * (amount - less) / (per if self.per else 1.0)

    def line(self, before: Counters, after: Counters) -> SectionLine:
        was, now = self.of(before), self.of(after)
        whole = [100.0] if self.unit == "%" else [abs(was or 0), abs(now or 0)]
        whole += [side.get(self.part_of, 0.0) for side in (before, after)]
        return SectionLine(self.what, self.unit, was, now, max(whole))


class SectionLine(NamedTuple):
    """A row with its figures; None for one that is not known."""

    what: str
    unit: str
    before: float | None
    after: float | None
    whole: float
    """100 %, an instruction's cycles, or the larger of the two figures."""

    @property
    def moved(self) -> float:
        """Its change as a fraction of the whole, 0 to 1."""
        if self.before is None or self.after is None:
            return 0.0
        return abs(self.after - self.before) / (self.whole or 1.0)

    @property
    def is_shown(self) -> bool:
        """Whether any of it is known and not zero, or next to nothing of the whole."""
        largest = max(abs(self.before or 0.0), abs(self.after or 0.0))
        return largest > (0.0 if self.unit == "%" else LEAST_PART * self.whole)

    @property
    def stands_out(self) -> bool:
        return self.moved >= MOVED

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Unit, baseline, now and change as text."""
        before, after = (NONE if one is None else quantity(one) for one in (self.before, self.after))
        return self.unit, before, after, self._change

    @property
    def _change(self) -> str:
        if self.before is None or self.after is None or abs(self.after - self.before) < LEAST_CHANGE * abs(self.before):
            return NONE
        return percent(self.after / self.before - 1) if self.before else f"+{quantity(self.after)}"


SECTIONS: Mapping[str, tuple[SectionRow, ...]] = msgspec.json.decode(
    Path(__file__).with_name("sections.json").read_bytes(), type=dict[str, tuple[SectionRow, ...]]
)
"""In the order of Nsight Compute's pages."""
LEAST_CHANGE, LEAST_PART = 0.00005, 0.001
"""Of the baseline: a smaller change is written as none; of the whole: a smaller part is left out."""


def details(before: Counters, after: Counters) -> list[tuple[str, list[SectionLine]]]:
    """The sections with their lines, what moved most first; lines without a figure, or next to nothing, are left out.

    Without one of the sides they stay in the order of Nsight Compute.
    """
    found = [(name, sorted(_lines(rows, before, after), key=_by_move)) for name, rows in SECTIONS.items()]
    return sorted(((name, lines) for name, lines in found if lines), key=lambda section: _by_move(section[1][0]))


def _lines(rows: tuple[SectionRow, ...], before: Counters, after: Counters) -> Iterator[SectionLine]:
    yield from filter(lambda line: line.is_shown, (row.line(before, after) for row in rows))


def _by_move(line: SectionLine) -> float:
    return -line.moved
