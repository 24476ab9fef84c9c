"""How far canary kernels moved: their times now, against those on record (``timing.canaries`` takes them)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pytest_gpuperf.model.evidence import Session

CANARY_SHIFT = 0.01
"""Log of its times by which a canary has to move to be a change of the machine."""


def has_comparable_canaries(old: Session, now: Session) -> bool:
    """Whether a session has canaries of this very GPU, this timer and this compiler."""
    return bool(old.canaries) and (old.uuid, old.timer, old.toolchain) == (now.uuid, now.timer, now.toolchain)


def canary_shifts(sessions: Iterable[Session], now: Session) -> dict[str, float]:
    """Log of each canary's time now over that in the comparable session from which it moved the most."""
    return furthest(
        {name: math.log(now.canaries[name] / old.canaries[name]) for name in sorted(old.canaries.keys() & now.canaries)}
        for old in sessions
        if has_comparable_canaries(old, now)
    )


def furthest(shifts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Of each canary the shift that is furthest from none; the first of equal ones."""
    found: dict[str, float] = {}
    for moved in shifts:
        for name, shift in moved.items():
            found[name] = max(found.get(name, 0.0), shift, key=abs)
    return found
