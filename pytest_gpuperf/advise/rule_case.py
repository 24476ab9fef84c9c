"""What a rule has to go by, and what it may find."""

from __future__ import annotations

import dataclasses

from pytest_gpuperf.advise.causes import Cause
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.advise.usage import Usage
from pytest_gpuperf.model.verdict import Change


@dataclasses.dataclass(frozen=True)
class Case:
    """Before and after, with what each makes the hardware do."""

    before: Side
    after: Side
    was: Usage
    now: Usage
    counted: bool
    """The usages come from counters, not from the machine code."""
    scale: float = 1.0
    """By what the figures of ``now`` were multiplied for as much work as ``was`` does."""

    @property
    def per(self) -> str:
        """What quantities are counted for: a warp, unless the machine code was scaled, and no warp does as many."""
        return "" if self.counted else "per warp" if self.scale == 1.0 else "for equal work"


WHOLE = 100
"""From here on a figure loses its fraction, and no digit before it."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """A cause that the evidence shows."""

    cause: Cause
    evidence: tuple[Change, ...]
    """Figures, before and after; the first one is the one to show."""
    without: Usage
    """The usage of ``after`` if this cause alone were put right."""
    gates: bool = False
    """It explains a figure that gates by itself: the verdict is red for it, whatever it costs."""


def grew(before: float | None, after: float | None, factor: float) -> bool:
    """Whether a quantity is known to have grown by at least this factor."""
    return before is not None and after is not None and after > max(before, 1e-12) * factor


def change(what: str, before: float, after: float, unit: str = "") -> Change:
    """A figure for the reader: whole numbers as they are, else three digits, and millions where there are many."""
    for size, prefix in ((1e9, "G"), (1e6, "M")):
        if max(before, after) >= size:
            before, after, unit = before / size, after / size, f"{prefix} {unit}".strip()
            break
    return Change(what=what, before=_short(before), after=_short(after), unit=unit, direction="worse")


def _short(value: float) -> float:
    return float(round(value)) if value == int(value) or abs(value) >= WHOLE else float(f"{value:.3g}")
