"""Names of the timers, for flags that are read before anything else is imported."""

from typing import Literal

TimerName = Literal["cupti", "graph"]
TIMERS: tuple[TimerName, ...] = ("cupti", "graph")
"""In order of preference."""
