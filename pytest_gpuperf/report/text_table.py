"""A table of text that fits the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.formatting import columns, visible
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.report.folding import shortened
from pytest_gpuperf.report.verdict_order import MARKUP

LEAST_COLUMNS = 2
LEAST_NAME = 24
"""Columns of a table that are kept on any terminal, and characters of the first one."""


class Line(NamedTuple):
    """One line of a table and how it is marked (names of pytest's terminal writer)."""

    text: str
    markup: tuple[str, ...] = ()


class Table:
    """Columns as wide as their widest cell; the first is flush left, headings and notes run across.

    Where the terminal is narrower, names in the first column are shortened, and then columns left out from the left.
    """

    def __init__(self, *columns: str, left_out: tuple[int, ...] = ()) -> None:
        """``left_out`` are the columns that go first where there is no room."""
        self._columns = columns
        self._left_out = left_out
        self._rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def heading(self, text: str) -> None:
        self._rows.append(((text,), ("bold",)))

    def note(self, text: str) -> None:
        self._rows.append(((text,), ()))

    def row(self, *cells: str, markup: tuple[str, ...] = ()) -> None:
        self._rows.append((tuple(map(visible, cells)), markup))

    def judged_row(self, name: str, cells: Sequence[str], verdict: Verdict | None) -> None:
        """A row that ends with a verdict and is marked as that is."""
        self.row(name, *cells, verdict.value if verdict else "-", markup=MARKUP.get(verdict, ()) if verdict else ())

    def __len__(self) -> int:
        return 1 + len(self._rows)

    def lines(self, width: int | None = None) -> list[Line]:
        """``width`` is that of the terminal, in columns; None for as much as it takes."""
        full = [cells for cells, _ in self._rows if len(cells) == len(self._columns)]
        widths = [max(columns(cell) for cell in column) for column in zip(self._columns, *full, strict=True)]
        kept = list(range(len(widths)))
        if width is not None:
            while len(kept) > LEAST_COLUMNS and LEAST_NAME + sum(widths[one] + 2 for one in kept[1:]) > width:
                kept.remove(next((one for one in self._left_out if one in kept), kept[1]))
            widths[0] = min(widths[0], max(LEAST_NAME, width - sum(widths[one] + 2 for one in kept[1:])))
        head = Line(_aligned(self._columns, widths, kept, width), ("bold",))
        return [head, *(Line(_aligned(cells, widths, kept, width), markup) for cells, markup in self._rows)]


def _aligned(cells: Sequence[str], widths: Sequence[int], kept: Sequence[int], most: int | None) -> str:
    if len(cells) == 1:
        return cells[0] if most is None else shortened(cells[0], most)
    rest = [" " * (widths[one] - columns(cells[one])) + cells[one] for one in kept[1:]]
    name = shortened(cells[0], widths[0])
    return "  ".join([name + " " * (widths[0] - columns(name)), *rest]).rstrip()
