"""Branches that split a warp: which lanes are on the way, and where the other ones wait.

The lanes that do not branch go on to where both sides meet, then the others follow; from there all go on together.
"""

from __future__ import annotations

import dataclasses

from pytest_gpuperf.compile.warp_model.flow import END
from pytest_gpuperf.compile.warp_model.values import WARP, Value, lanes_of

Mask = tuple[bool, ...]
EVERYONE: Mask = (True,) * WARP
DATA_SHARE = 0.5
"""Share of the lanes on each side of a branch that data decide; all of them if there is one side only."""


@dataclasses.dataclass
class Split:
    """One branch whose sides are walked one after the other."""

    waiting: int | None
    """Start of the second side; None once it is on the way."""
    meet: int
    """Point at which the sides meet; ``END`` if they do not."""
    first: Mask | None
    """Lanes on the first side; None if data decide."""
    one_sided: bool = False
    """The second side is empty."""
    uniform: bool = False
    """All lanes go the same way, though nobody knows which."""

    @property
    def lanes(self) -> Mask | None:
        if self.first is None or self.waiting is not None:
            return self.first
        return tuple(not on for on in self.first)


class Splits:
    """The splits that the way is inside of."""

    def __init__(self) -> None:
        self._open: list[Split] = []
        self._gone: Mask = (False,) * WARP
        self._left = 1.0
        """Share that is left of those who did not leave where data told them to."""
        self.mask: Mask = EVERYONE
        """The lanes on the way, as far as they are known."""
        self.share = 1.0
        """Fraction of the warp that is on the way."""
        self.data_share = 1.0
        """Part of that fraction that data decide."""
        self.by_data = False
        """True if data decide that the way leads here."""

    def split(self, condition: Value, target: int, meet: int) -> None:
        """Open a split: lanes for which the condition holds wait at ``target``."""
        first = None if condition.bits is None else tuple(not bit for bit in lanes_of(condition.bits)[:WARP])
        self._open.append(Split(target, meet, first, one_sided=target == meet, uniform=_is_uniform(condition)))
        self._count()

    def without(self, condition: Value) -> None:
        """Lanes for which the condition holds leave the kernel."""
        assert condition.bits is not None
        lanes = zip(self._gone, self.mask, lanes_of(condition.bits), strict=False)
        self._gone = tuple(gone or (on and bool(bit)) for gone, on, bit in lanes)
        self._count()

    def side_left(self) -> None:
        """The lanes of a side that data decide leave the kernel; the other side goes on."""
        self._left *= DATA_SHARE
        self._count()

    def arrive(self, place: int) -> int:
        """Next place after ``place``: the other side's beginning if this is where the sides meet."""
        while self._open and self._open[-1].meet == place:
            waiting, self._open[-1].waiting = self._open[-1].waiting, None
            if waiting is not None and waiting != place:
                self._count()
                return waiting
            self._open.pop()
            self._count()
        return place

    def side_ends(self) -> int | None:
        """The side leaves the kernel: where lanes that wait go on; None if there are none."""
        while self._open:
            waiting, self._open[-1].waiting = self._open[-1].waiting, None
            if waiting is not None:
                self._count()
                return waiting
            meet = self._open.pop().meet
            self._count()
            if meet != END:
                return meet
        return None

    def _count(self) -> None:
        mask, share = tuple(not gone for gone in self._gone), self._left
        for split in self._open:
            if split.lanes is None:
                share *= 1.0 if split.one_sided or split.uniform else DATA_SHARE
            else:
                mask = tuple(a and b for a, b in zip(mask, split.lanes, strict=True))
        self.mask, self.share, self.data_share = mask, share * sum(mask) / WARP, share
        self.by_data = any(split.first is None for split in self._open)


def _is_uniform(condition: Value) -> bool:
    """Whether a condition that is not known depends on neither data nor the thread, but on arguments."""
    return condition.bits is None and condition.example and not condition.by_data and not condition.by_thread
