"""The kinds of timers, by name."""

from __future__ import annotations

from typing import Literal, get_args

TimerName = Literal["cupti", "graph", "events"]

TIMERS: tuple[TimerName, ...] = get_args(TimerName)
"""In order of preference."""
