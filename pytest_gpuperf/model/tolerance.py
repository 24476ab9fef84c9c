"""The indifference zone: slower by how much is accepted, and by how much must be seen."""

from __future__ import annotations

from typing import NamedTuple


class Tolerance(NamedTuple):
    """The indifference zone of a profile, as fractions of the baseline's time."""

    delta: float
    """Slower by no more than this is accepted."""
    epsilon: float
    """Slower by this must be detected."""


PROFILES: dict[str, Tolerance] = {
    "tight": Tolerance(0.005, 0.01),
    "standard": Tolerance(0.01, 0.02),
    "loose": Tolerance(0.02, 0.05),
}

COARSE = Tolerance(0.02, 0.05)
"""What a comparison with the record alone resolves: the least of its tolerances."""
