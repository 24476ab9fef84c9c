"""What flags and the marker choose from: names of timers, and limits of a verdict on time.

A plain run reads this and no other record: it imports nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

TimerName = Literal["cupti", "graph"]
TIMERS: tuple[TimerName, ...] = ("cupti", "graph")
"""In order of preference."""


class Limits(NamedTuple):
    """Fractions of the baseline's time; between the two either verdict will do."""

    tolerance: float
    """Slower by no more than this is accepted."""
    detect: float
    """Slower by this must be found."""


PROFILES: dict[str, Limits] = {
    "tight": Limits(0.005, 0.01),
    "standard": Limits(0.01, 0.02),
    "loose": Limits(0.02, 0.05),
}
MOST_BUDGET_S = 3600
"""For timing one workload: the most that can be asked for."""
