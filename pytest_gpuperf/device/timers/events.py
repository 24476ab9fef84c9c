"""Event pairs around batches of launches queued behind a delay: the timer that works everywhere.

A pair reads more than its launches take: a constant per pair and a gap per launch (on an H200 about 2 us and 0.7 us).
Both are measured with batches of empty kernels when the timer opens, and subtracted.  A callable of several launches
reads about 0.7 us more for each but the first.

* warm: a sample is a batch of as many launches as last 1,000 ticks, divided by their number;
* cold, or with a ``reset``: a sample is one launch, for only the first of a batch would be cold or restored.

Read errors left after the subtraction are about 0.1 us, so 4 % at 2.5 us and 1 % at 10 us.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers.queued import QueuedPairs, measure_empty_kernel, middle, repeated, typical_reading
from pytest_gpuperf.device.timers.stream import WorkStream
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timer_names import TimerName

TICKS_PER_SAMPLE = 1000
MOST_LAUNCHES = 400
"""Bound of a batch: all of it has to fit into the launch queue, behind the delay."""
_CALIBRATION_BATCH = 21
_READINGS = 15
"""Readings of an empty kernel, for the overhead of a launch."""


def open_timer(stream: WorkStream) -> Timer:
    """The event timer on ``stream``, calibrated.  Raises ``TimerUnavailable`` if that fails."""
    try:
        return EventTimer(stream)
    except TimerError as error:
        raise TimerUnavailable("events", f"it cannot be calibrated ({error})", "update the GPU driver") from error


class EventTimer:
    """``Timer`` by event pairs."""

    name: TimerName = "events"
    kernel_breakdown = ()
    pauses_ns = ()

    def __init__(self, stream: WorkStream) -> None:
        self._pairs = QueuedPairs(stream)
        own = measure_empty_kernel(stream, self._pairs).own_ns
        single = typical_reading(self._pairs, stream.empty, _READINGS)
        batch = typical_reading(self._pairs, repeated(stream.empty, _CALIBRATION_BATCH), _READINGS)
        launch = (batch - single) / (_CALIBRATION_BATCH - 1)
        self._gap_ns = launch - own
        self._pair_ns = single - launch
        self.overhead_ns = single - own
        self.tick_ns = self._pairs.tick_ns()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """See ``Timer``.  One batch size for all slots, so that none is favoured."""
        once = {id(slot.run): slot.run for slot in slots if slot.dropped and not slot.guard}
        for run in once.values():
            self._pairs.run_once(run)
        alone = cache == "cold" or any(slot.reset or slot.guard for slot in slots)
        batch = 1 if alone else self._batch(slots)
        return [self._take(slot, batch, cold=cache == "cold") for slot in slots]

    def _batch(self, slots: Sequence[Slot]) -> int:
        """Launches per sample so that the shortest workload's sample lasts 1,000 ticks."""
        runs = {id(slot.run): slot.run for slot in slots}  # each has run before
        shortest = min(middle([self._pairs.read(run) for _ in range(3)]) for run in runs.values()) - self.overhead_ns
        return launches_per_sample(shortest, TICKS_PER_SAMPLE * self.tick_ns, MOST_LAUNCHES)

    def _take(self, slot: Slot, batch: int, *, cold: bool) -> list[float]:
        work, taken = repeated(slot.run, batch), range(slot.dropped + slot.samples)
        readings = [self._pairs.read(work, prepare=slot.reset, cold=cold, guard=slot.guard) for _ in taken]
        return [positive_time((reading - self._pair_ns) / batch - self._gap_ns) for reading in readings[slot.dropped :]]


def launches_per_sample(duration_ns: float, wanted_ns: float, most: int) -> int:
    """Launches of ``duration_ns`` each that together last ``wanted_ns``, from 1 to ``most``."""
    if duration_ns * most <= wanted_ns:
        return most
    return max(1, math.ceil(wanted_ns / duration_ns))


def positive_time(time_ns: float) -> float:
    """``time_ns`` if it is above zero.  Raises ``TimerError`` if not: then nothing ran between the events."""
    if time_ns > 0:
        return time_ns
    raise TimerError(
        "the timed stream was idle between the two events: the workload launches nothing, or launches on another "
        "stream. Launch on the current stream (CuPy does; pass 'stream=' to other libraries)"
    )
