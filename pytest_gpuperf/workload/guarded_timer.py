"""A timer that guards what it measures: every sample has inputs of its own, and some are checked behind the batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_gpuperf.config.call_arguments import BadArgument
from pytest_gpuperf.device.interface import SampleGuard, Slot, Timer
from pytest_gpuperf.device.plain_arrays import NotPlain
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.workload.run_guard import Result, RunGuard

MOST_BATCHES_UNSEEN = 1
"""Between two batches of which a sample is checked."""
WARM_UP_BATCHES = 2
"""Whose times do not count, and which say what a sample costs: they are not looked at."""
CHECK_SHARE = 0.25
"""Of the time since the first batch that checks may take, behind the first of them."""

Look = Callable[[int, Result], None]
"""Checks the result of the run whose seed has this number; raises what it finds."""


class GuardedTimer:
    """A ``Timer`` for slots whose ``reset`` is that of a guard; others are measured as they are."""

    def __init__(self, timer: Timer, guard: RunGuard, look: Look | None) -> None:
        """``look`` is None where results are not looked at: those of another revision, in its process."""
        self._timer, self._guard, self._look = timer, guard, look
        self.name: TimerName = timer.name
        self.tick_ns = timer.tick_ns
        self.overhead_ns = timer.overhead_ns
        self._began = 0.0
        self._looking_s = 0.0
        self._batches_left = WARM_UP_BATCHES + guard.coin.randrange(MOST_BATCHES_UNSEEN + 1)
        """Until one is looked at."""

    @property
    def kernel_breakdown(self) -> Sequence[Mapping[str, float]]:
        return self._timer.kernel_breakdown

    @property
    def pauses_ns(self) -> Sequence[float]:
        return self._timer.pauses_ns

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """As ``Timer.measure``; raises what the check of a sample raises, too."""
        self._began = self._began or time.perf_counter()
        batch = _SampledBatch(self._guard, slots, looked_at=self._is_due(slots))
        times = self._timer.measure([batch.guarded(slot) for slot in slots], cache)
        if batch.problem is not None:
            raise batch.problem
        if batch.result is not None and self._look is not None:
            began = time.perf_counter()
            self._look(batch.number, batch.result)
            self._looking_s += time.perf_counter() - began
        return times

    def _is_due(self, slots: Sequence[Slot]) -> bool:
        if self._look is None or not any(slot.reset == self._guard.reset for slot in slots):
            return False
        if self._batches_left > 0:
            self._batches_left -= 1
            return False
        if self._looking_s > CHECK_SHARE * (time.perf_counter() - self._began):
            return False
        self._batches_left = self._guard.coin.randrange(MOST_BATCHES_UNSEEN + 1)
        return True


class _SampledBatch:
    """The samples of one call of a timer.  The same sample of the workload and of the baseline has the same seed."""

    def __init__(self, guard: RunGuard, slots: Sequence[Slot], *, looked_at: bool) -> None:
        self._guard, self._first = guard, guard.runs
        self._made = {True: 0, False: 0}
        self._behind = {True: 0, False: 0}
        places, counted = 0, list[int]()
        for slot in (one for one in slots if one.reset == guard.reset):
            counted += range(places + slot.dropped, places + slot.dropped + slot.samples)
            places += slot.dropped + slot.samples
        self._drawn = guard.coin.choice(counted) if looked_at else -1
        self.number = -1
        """Number of the seed of the sample that was drawn, once it has run."""
        self.result: Result | None = None
        self.problem: Exception | None = None

    def guarded(self, slot: Slot) -> Slot:
        """The slot, its samples guarded; ``reset`` makes their inputs."""
        own = slot.reset == self._guard.reset
        if not own and slot.reset != self._guard.reset_baseline:
            return slot
        return slot._replace(
            reset=lambda: self._prepare(own),
            guard=SampleGuard(self._guard.arm, lambda result: self._after(own, result)),
        )

    def _prepare(self, own: bool) -> None:
        self._guard.prepare(self._first + self._made[own])
        self._made[own] += 1
        self._guard.runs = self._first + max(self._made.values())

    def _after(self, own: bool, returned: Any) -> None:
        """Copy the result of the sample that was drawn, and the baseline's at the same place: both cost alike."""
        place = self._behind[own]
        self._behind[own] += 1
        if place != self._drawn:
            return
        try:
            result = self._guard.result(returned)
        except (NotPlain, BadArgument) as problem:  # the timer is to end in order
            self.problem = problem if own else self.problem
            return
        if own:
            self.result, self.number = result, self._first + self._made[own] - 1
