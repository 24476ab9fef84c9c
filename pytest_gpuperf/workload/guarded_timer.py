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

LOOKED_AT = 3
"""Samples of a batch that are checked, drawn at random."""
WARM_UP_BATCHES = 2
"""Whose times do not count, and which say what a sample costs: nothing of them is checked."""
CHECK_SHARE = 0.25
"""Of the time since the first batch that checks may take ..."""
CHECK_S = 1.0
"""... or so many seconds, if that is more, before they become rare: ..."""
RARE = 1 / 8
"""... by so much of a chance in each batch."""

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
        self._batches = 0

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
        began = time.perf_counter()
        for number, result in batch.results:
            assert self._look is not None
            self._look(number, result)
        self._looking_s += time.perf_counter() - began
        return times

    def _is_due(self, slots: Sequence[Slot]) -> bool:
        self._batches += 1
        if self._look is None or self._batches <= WARM_UP_BATCHES:
            return False
        if not any(slot.reset == self._guard.reset for slot in slots):
            return False
        affordable_s = max(CHECK_S, CHECK_SHARE * (time.perf_counter() - self._began))
        return self._looking_s <= affordable_s or self._guard.coin.random() < RARE


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
        self._drawn = guard.coin.sample(counted, min(LOOKED_AT, len(counted))) if looked_at else []
        self.results: list[tuple[int, Result]] = []
        """Of the samples that were drawn, each with the number of its seed."""
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
        """Copy the result of a sample that was drawn, and the baseline's at the same place: both cost alike."""
        place = self._behind[own]
        self._behind[own] += 1
        if place not in self._drawn:
            return
        try:
            result = self._guard.result(returned)
        except (NotPlain, BadArgument) as problem:  # the timer is to end in order
            self.problem = problem if own else self.problem
            return
        if own:
            self.results.append((self._first + self._made[own] - 1, result))
