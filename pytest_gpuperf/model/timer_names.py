"""Names of the timers, for flags that are read before anything else is imported."""

from typing import Literal

TimerName = Literal["cupti", "graph", "events"]
TIMERS: tuple[TimerName, ...] = ("cupti", "graph", "events")
"""In order of preference."""
