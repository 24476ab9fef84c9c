"""One block of a pairing as it was taken: what the judge reads, and what a report says of it."""

from __future__ import annotations

import math

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.timing import sample_stats

NO_SLOW = sample_stats.SlowShare(0, 0.0)


class Block(Record, frozen=True):
    """One exchange of baseline (A) and candidate (B)."""

    r: float
    """ln midmean(B) - ln midmean(A): above 0, the candidate is slower."""
    order: str
    """``ABBA``, of its first four slots and of each four that follow; of a long block, of its eight launches."""
    discarded: bool = False
    reason: str = ""
    """Reason why it was discarded, found without regard to which slot was which."""
    seconds: float = 0.0
    """Wall-clock time it took, re-allocation included."""
    carry_over: float = 0.0
    """Difference, in log time, of a slot behind one of the other side and behind one of its own."""
    times_ns: tuple[float, ...] = ()
    """Times of a long block's launches, in their order; empty of short slots."""
    tail: float | None = None
    """ln of the candidate's winsorised mean over the baseline's; None of sustained slots."""
    samples: int = 0
    """Of each side."""
    slow: tuple[sample_stats.SlowShare, sample_stats.SlowShare] = (NO_SLOW, NO_SLOW)
    """Samples of the baseline and of the candidate that take far longer than their median."""
    remark: str = ""
    """Whatever the GPU's state after it says against it; it counts all the same."""

    @property
    def ratios(self) -> tuple[float, ...]:
        """Log ratios of its pairs: ``r``, or of a long block each of a candidate's and a baseline's launch."""
        if not self.times_ns:
            return (self.r,)
        return tuple(math.log(ours / theirs) for ours in self.of("B") for theirs in self.of("A"))

    def of(self, side: str) -> tuple[float, ...]:
        """Times of a long block's launches of one side, nanoseconds."""
        return tuple(one for label, one in zip(self.order, self.times_ns, strict=True) if label == side)
