"""Elapsed device time in place of the sum of what a callable launches."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.device.interface import Slot, WorkloadTimer
from pytest_gpuperf.model.limits import TimerName
from pytest_gpuperf.model.time_record import CacheMode


class ElapsedTimer:
    """A timer whose samples last from the first start to the last end of their work on any stream; gaps count."""

    name: TimerName = "elapsed"

    def __init__(self, timer: WorkloadTimer) -> None:
        self._timer, self.tick_ns = timer, timer.tick_ns

    @property
    def elapsed_ns(self) -> Sequence[Sequence[float]]:
        return self._timer.elapsed_ns

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """As ``SlotTimer.measure``.  Raises ``BadArgument`` where the timer does not see starts and ends."""
        self._timer.measure(slots, cache)
        if not self.elapsed_ns:
            raise BadArgument(
                "measure='elapsed' needs the CUPTI timer, which sees all streams: pip install 'pytest-gpuperf[cupti]' "
                "(gpuperf doctor says why it is not used here), or leave elapsed out"
            )
        return [list(of_slot) for of_slot in self.elapsed_ns]
