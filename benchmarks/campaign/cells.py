"""What the campaign tries: kernels, slowdowns, tolerances.  A cell is one combination, tried again and again."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from pytest_gpuperf.judge.error_budget import Spending
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.selftest.kernels import COPY, LOOP, SCATTER, SOFTMAX
from pytest_gpuperf.selftest.known_slowdowns import Wanted

PLACE = 20
"""Each verdict is judged as that of the 20th changed workload of a run."""
GRAPH_LEAST_NS = 20_000.0
"""Kernels from this length on are promised to be gated without CUPTI."""
PERCENTS = (0.1, 0.2, 0.3, 0.4, 0.5, 1.0, 2.0)
"""Slowdowns that every kernel gets versions of, but for *scatter*: on some GPUs more to write takes no more time."""

WANTED = (
    Wanted("loop 2.5 us", LOOP, duration_ns=2500.0),
    Wanted("loop 10 us", LOOP, duration_ns=10_500.0),
    Wanted("loop 20 us", LOOP, duration_ns=21_000.0),
    Wanted("loop 100 us", LOOP, duration_ns=100_000.0),
    Wanted("loop 1 ms", LOOP, duration_ns=1_000_000.0),
    Wanted("copy 16 MB", COPY, count=1 << 20),
    Wanted("copy 64 MB", COPY, count=1 << 22),
    Wanted("copy 256 MB", COPY, count=1 << 24),
    Wanted("scatter", SCATTER, count=1 << 22, slower=False),
    Wanted("softmax", SOFTMAX, count=1 << 14),
)
SHORT = "loop 2.5 us"
LOOPS = ("loop 10 us", "loop 100 us", "loop 1 ms")
GRAPH_LOOPS = ("loop 20 us", "loop 100 us", "loop 1 ms")
COPIES = ("copy 16 MB", "copy 64 MB", "copy 256 MB")
FINEST = ("loop 100 us", "loop 1 ms")
SLOW = ("copy 64 MB", "softmax")
"""Take more than half a second per verdict: of equal code they are tried in every fourth pass."""
FINE = ((0.0, 0.0005), (0.1, 0.0005), (0.0, 0.001), (0.2, 0.001), (0.0, 0.0015), (0.3, 0.0015))
"""Percent and tolerance, for finding the smallest effect that can be gated."""
RECORDED = (SHORT, "loop 10 us", "loop 100 us", "loop 1 ms", *COPIES[::2], "softmax")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One kernel, its slowdown in percent and the tolerance (a fraction) it is judged under."""

    subject: str
    percent: float
    delta: float = 0.005

    @property
    def policy(self) -> Policy:
        """As the gate judges."""
        return Policy(delta=self.delta, epsilon=2 * self.delta, alpha=Spending().share(PLACE))

    @classmethod
    def of(cls, record: dict[str, Any]) -> Cell:
        """The cell that a line of results belongs to."""
        return cls(record["subject"], record["percent"], record["delta"])


def cells_of(part: str, durations_ns: dict[str, float], timer: str, only: Collection[str] = ()) -> list[Cell]:
    """Cells of a part of the campaign; without CUPTI only of kernels that are long enough.

    ``only`` names the kernels (``softmax``) or cells (``softmax@1``, with the slowdown in percent) to keep; none: all.
    Raises ``ValueError`` for a name that the part has no cell of.
    """
    cells = {"aa": _same, "effects": effects, "fine": _fine, "blocks": _recorded}[part](timer)
    names = {cell: {cell.subject, f"{cell.subject}@{cell.percent:g}"} for cell in cells}
    if unknown := sorted(set(only).difference(*names.values())):
        raise ValueError(
            f"{part} has no {', '.join(unknown)}; it has {', '.join(sorted(set().union(*names.values())))}"
        )
    if only:
        cells = [cell for cell in cells if names[cell] & set(only)]
    if timer == "cupti":
        return cells
    return [cell for cell in cells if durations_ns[cell.subject] >= GRAPH_LEAST_NS]


def _same(_timer: str) -> list[Cell]:
    return [Cell(one.name, 0.0) for one in WANTED]


def effects(timer: str) -> list[Cell]:
    """Slowdowns, and kernels against themselves under a tighter tolerance."""
    loops: Sequence[str] = LOOPS if timer == "cupti" else GRAPH_LOOPS
    copies = COPIES[::2] if timer == "cupti" else COPIES[1:]
    cells = [Cell(name, percent) for name in (*loops, *copies) for percent in (0.4, 1.0, 2.0)]
    cells.append(Cell(SHORT, 2.0))
    cells += [Cell(name, percent, 0.0025) for name in loops for percent in (0.0, 0.5)]
    return cells


def _fine(_timer: str) -> list[Cell]:
    return [Cell(name, percent, tolerance) for name in FINEST for percent, tolerance in FINE]


def _recorded(_timer: str) -> list[Cell]:
    return [Cell(name, percent) for name in RECORDED for percent in (0.0, 1.0, 2.0)]
