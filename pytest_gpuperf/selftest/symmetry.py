"""Symmetry of the exchange, tested on blocks of A/A self-pairs: kernels paired with themselves.  Pure.

For equal kernels half of all blocks are above zero, and successive votes are independent
(docs/explanation/statistics.md, "What is guaranteed").  Where code lies may make a true difference between a kernel and
itself: votes are then biased, and the mean gives the size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.tolerance import PROFILES

DELTA = PROFILES["tight"].delta
"""Difference in log time; a block of equal kernels should not be as far from zero."""
_CLEAR_SE = 3.0
"""Standard errors from one half, beyond which votes are biased."""


class Symmetry(Record, frozen=True):
    """Blocks of one kernel against itself, of all processes together."""

    kernel: str
    blocks: int
    slower: int
    """Blocks above zero."""
    neighbours: int
    """Pairs of blocks, one behind the other in the same process."""
    alike: int
    """Pairs on the same side of zero."""
    beyond: int
    """Blocks that are further from zero than ``DELTA``."""
    mean: float
    """Log ratio of the kernel to itself."""
    carry_over: float
    """Difference, in log time, of a slot behind one of the other side and behind one of its own."""
    carry_over_se: float
    """Standard error of that."""

    @property
    def leans(self) -> bool:
        """True if one side is slower too often for a fair coin, or votes follow each other (three standard errors)."""
        return _far_from_half(self.slower, self.blocks) or _far_from_half(self.alike, self.neighbours)


def symmetry(kernel: str, processes: Sequence[Sequence[float]], carry_over: Sequence[float]) -> Symmetry | None:
    """Symmetry from the block values of each process and the carry-over of each block; None below two blocks."""
    values = [value for of_process in processes for value in of_process]
    if len(values) < 2:
        return None
    pairs = [pair for of_process in processes for pair in itertools.pairwise(of_process)]
    return Symmetry(
        kernel=kernel,
        blocks=len(values),
        slower=sum(value > 0 for value in values),
        neighbours=len(pairs),
        alike=sum((one > 0) == (other > 0) for one, other in pairs),
        beyond=sum(abs(value) > DELTA for value in values),
        mean=float(np.mean(values)),
        carry_over=float(np.mean(carry_over)),
        carry_over_se=float(np.std(carry_over, ddof=1)) / math.sqrt(len(carry_over)),
    )


def _far_from_half(count: int, of: int) -> bool:
    return abs(count - of / 2) > _CLEAR_SE * math.sqrt(of) / 2
