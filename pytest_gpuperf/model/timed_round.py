"""Rounds: what a batch of samples says, as it was taken and as a record keeps it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.model.base_record import Record


class RecordedRound(Record, frozen=True, kw_only=True):
    """What a record keeps of a round: all that a judge reads.  Times are nanoseconds per launch."""

    session: str
    """``Session.id`` under which it was taken."""
    midmean: float
    """Mean of the middle half, or of the core of coarse readings (``timing.samples.centre``)."""
    sm_clock_mhz: tuple[int, int] | None = None
    """SM clock before and after."""
    iqr: float = 0.0
    """Between the quartiles of its samples: what the midmean is rounded by when it is written, and not on disk."""

    def recorded(self) -> RecordedRound:
        """What a record keeps of it."""
        return self


class Round(RecordedRound, frozen=True, kw_only=True):
    """Summary of one batch of samples of one workload, as it was taken."""

    samples: int
    quantiles: tuple[float, ...]
    """5, 25, 50, 75 and 95 %."""
    minimum: float
    maximum: float

    def recorded(self) -> RecordedRound:
        return RecordedRound(
            session=self.session, midmean=self.midmean, sm_clock_mhz=self.sm_clock_mhz,
            iqr=self.quantiles[3] - self.quantiles[1],
        )  # fmt: skip


def mean_time_ns(rounds: Sequence[RecordedRound]) -> float:
    """Nanoseconds per run: the geometric mean of the rounds' midmeans."""
    return math.exp(math.fsum(math.log(one.midmean) for one in rounds) / len(rounds))
