"""Rounds: what a batch of samples says, as it was taken and as a record keeps it; and the GPU beside it."""

from __future__ import annotations

from pytest_gpuperf.model.base_record import Record


class RecordedRound(Record, frozen=True, kw_only=True):
    """What a record keeps of a round: all that a judge reads.  Times are nanoseconds per launch."""

    session: str
    """``Session.id`` under which it was taken."""
    process: int
    """Which of the session's processes took it; rounds of one process share what no round can see."""
    midmean: float
    """Mean of the middle half, or of the core of coarse readings (``sample_stats.centre``); inference rests on it."""
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
    median: float
    quantiles: tuple[float, float, float, float, float]
    """5, 25, 50, 75 and 95 %."""
    minimum: float
    maximum: float
    rho1: float = 0.0
    """Lag-1 autocorrelation of the samples."""
    drift: float = 0.0
    """Relative change from the first to the last tenth by a line through ten batch medians; 0 if not significant."""
    modes: int = 1
    """2 if the samples split into two clear groups, else 1 (``timing.sample_stats.modes``)."""

    def recorded(self) -> RecordedRound:
        return RecordedRound(
            session=self.session, process=self.process, midmean=self.midmean, sm_clock_mhz=self.sm_clock_mhz,
            iqr=self.quantiles[3] - self.quantiles[1],
        )  # fmt: skip


class DeviceState(Record, frozen=True):
    """What NVML says about the GPU at one moment.  None: this GPU or driver does not tell."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    """Reasons other than idle: ``power cap``, ``thermal slowdown``, ..."""
    other_processes: tuple[int, ...] = ()
    """Process ids of others computing on this GPU."""
