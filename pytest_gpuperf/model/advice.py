"""What is said of a change: causes with their evidence, and the state of a kernel."""

from __future__ import annotations

from typing import Literal

from pytest_gpuperf.model.evidence import Record
from pytest_gpuperf.model.verdict import Change

Bound = Literal["compute", "memory", "latency", "compute and memory", "divergence"]


class Advice(Record, frozen=True):
    """One cause, with its evidence and what putting it right would gain."""

    cause: str
    """Key of one of ``causes.BY_KEY``, which has the words for it."""
    evidence: tuple[Change, ...]
    """Figures, before and after; the most telling one first."""
    gain: float
    """Fraction of the time of the slower version, 0 to 1: an estimate."""
    arch: str = ""
    """Whose machine code was compared."""
    counted: bool = False
    """The estimate rests on counters; otherwise on the machine code alone."""
    gates: bool = False
    """It explains a figure that gates by itself, and is named whatever it costs."""
    same_code: bool = False
    """Both sides ran the very same machine code: what differs is launch or data."""
    outweighed: bool = False
    """By the same estimate the whole became faster all the same, for what else changed."""


class State(Record, frozen=True):
    """What holds a kernel back."""

    bound: Bound
    why: str
    """The figures that say so."""
    roofline: float | None = None
    """Least possible time, by the declared bytes and operations and the measured ceilings, over the time taken."""
    missing: str = ""
    """What would tell more."""
