"""A curve over a parameter."""

from __future__ import annotations

from typing import NamedTuple


class SweepPoint(NamedTuple):
    x: float | None
    """None where the parameter is no number."""
    label: str
    value: float
    shown: str


class Sweep(NamedTuple):
    name: str
    points: tuple[SweepPoint, ...]
