"""What flags and the marker choose from: timers, limits of a verdict on time, and names of metrics.

A plain run reads this and no other record.
"""

from __future__ import annotations

import re
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


LIMITS = Limits(0.005, 0.01)
"""Where nothing else is asked for."""
MOST_BUDGET_S = 3600
"""For timing one workload: the most that can be asked for."""


def is_metric(word: str) -> bool:
    """Whether it can be a metric's name: without an underscore it is a misspelt set, or a set where none is taken."""
    return re.fullmatch(r"(?=[^.]*_)[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*", word) is not None
