"""What a candidate is compared with: one protocol for a baseline's machine code and for another process.

``compare`` takes blocks of the two sides; an opponent says how they run, and what is placed anew between blocks.
"""

from __future__ import annotations

import random
from typing import Protocol

from pytest_gpuperf.device.interface import Timer
from pytest_gpuperf.timing.blocks import Sides

RELOAD_EVERY = 8
"""Blocks after which modules are loaded anew."""
PAD_STEP = 512
"""Bytes: what the addresses of fresh buffers are multiples of."""
MOST_PAD = 2 << 20
"""Bytes by which buffers are moved at most."""


class Opponent(Protocol):
    """The other side of a comparison, and the candidate beside it."""

    timer: Timer
    """Measures slots of either side."""

    @property
    def sides(self) -> Sides:
        """The baseline and the candidate, as they are placed now."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """For the report."""

    def place(self, call: int, coin: random.Random) -> None:
        """Before the timer's call number ``call``: both sides get other addresses, and modules are loaded anew.

        Nothing of it may depend on which side is which.
        """

    def leave(self) -> None:
        """After the last block: buffers of the caller's own hold what the candidate writes."""


def pad_of(coin: random.Random) -> int:
    """Bytes by which something is moved, drawn anew."""
    return PAD_STEP * (1 + coin.randrange(MOST_PAD // PAD_STEP))
