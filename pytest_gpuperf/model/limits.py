"""What flags and the marker choose from: timers, limits of a verdict on time, and names of metrics.

A plain run reads this and no other record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

TimerName = Literal["cupti", "graph", "elapsed"]
TIMERS: tuple[TimerName, ...] = ("cupti", "graph")
"""In order of preference."""


class Limits(NamedTuple):
    """Fractions of the baseline's time; between the two either verdict will do."""

    tolerance: float
    """Slower by no more than this is accepted."""
    detect: float
    """Slower by this must be found."""

    def at_least(self, tolerance: float) -> Limits:
        """These, or wider ones that accept so much."""
        return self if self.tolerance >= tolerance else Limits(tolerance, max(self.detect, 2 * tolerance))


Profile = Literal["tight", "standard", "loose"]
TOLERANCES: Mapping[str, float] = MappingProxyType({"tight": 0.005, "standard": 0.01, "loose": 0.05})
"""By the name of a profile; twice as much is detected."""
TIGHT = Limits(0.005, 0.01)
"""What is promised of the procedure is measured with these."""
MOST_DELTA_US = 1_000_000
"""Microseconds of a slowdown that is accepted whatever its ratio: the most that can be asked for."""
MOST_BUDGET_S = 3600
"""For timing one workload: the most that can be asked for."""


def is_metric(word: str) -> bool:
    """Whether it can be a metric's name: without an underscore it is a misspelt set, or a set where none is taken."""
    return re.fullmatch(r"(?=[^.]*_)[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*", word) is not None
