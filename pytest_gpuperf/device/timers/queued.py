"""Event pairs around work that is enqueued before the GPU gets to it.

If the host is slower to enqueue than the GPU is to run, an event pair times the host.  So the GPU is kept
busy first: by the L2 flush, and by a kernel that spins for a bounded number of cycles.  If the start event is no longer
pending when the stop event is enqueued, the sample is taken again behind a longer delay.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.device.interface import SampleGuard
from pytest_gpuperf.device.timers.resolution import tick_of
from pytest_gpuperf.device.timers.stream import Mark, WorkStream
from pytest_gpuperf.device.timers.timer_errors import LateTry, TimerError, never_in_time

FIRST_DELAY_NS = 30_000.0
LONGEST_DELAY_NS = 20_000_000.0
TRIES_AT_LONGEST = 3
"""One hiccup of the host behind the longest delay proves nothing; so many in a row do."""
_GROWTH = 2.0
ASIDE_NS = 1_000_000.0
"""A delay ahead of guarded work is longer by up to so much, drawn anew each time.  Work of another stream that is over
within the delay had old inputs; what is not over soon behind the sample lags behind it."""
LAG_NS = 200_000.0
"""For longer the host alone does not look away ..."""
MOST_LAGS = 3
"""... in so many samples in a row."""
TRIES_TO_KEEP_UP = 8
"""Runs of work that nobody distrusts, of which one has to be over with its stream: a busy host looks away often."""
WAKE_NS = 10_000_000.0
_RATE_CYCLES = 200_000
_RATES = 3
_TICK_READINGS = 64
_FEW_LAUNCHES = 20
_MANY_LAUNCHES = 120
_EMPTY_READINGS = 9

Work = Callable[[], Any]


_GOES_ON = (
    "the workload goes on when the stream that is timed is done: it launches on another one, which is not timed. "
    "Launch on gpu.stream, or have the current stream wait for the others by events"
)


class _Enqueued(NamedTuple):
    """Work put on the stream for one reading, with its times."""

    ahead: Mark | None
    """Before the delay; of the longest alone, for only then is it of interest how long it lasted."""
    start: Mark
    stop: Mark
    launched_ns: float
    """The host's clock when the delay was launched."""
    work_ns: float
    """Host time from the end of launching the delay to ``stop``."""
    returned: Any
    """What the work returned."""


class QueuedPairs:
    """Takes readings on one stream and remembers how long a delay they need."""

    def __init__(self, stream: WorkStream) -> None:
        self._stream = stream
        self._ns_per_cycle = self._spin_rate()
        self._delay_ns = {"cold": 0.0, "warm": FIRST_DELAY_NS, "guarded": FIRST_DELAY_NS}
        self._lags = 0

    def read(
        self, work: Work, *, prepare: Work | None = None, cold: bool = False, guard: SampleGuard | None = None,
        replayed: bool = False,
    ) -> float:  # fmt: skip
        """Nanoseconds from before ``work`` to after it, overhead of the pair included.

        ``prepare`` is enqueued first, then the L2 flush if ``cold``; neither is timed.  What a ``guard`` arms comes
        behind the delay and before the flush: work that does not wait for this stream runs during the delay, on what
        the sample before it had.  ``replayed`` work is a graph, which has none of that.  Raises ``NeverInTime``, a
        ``TimerError``, if ``work`` is not enqueued behind the longest delay of 20 ms before that is over, three times
        in a row, and ``TimerError`` if guarded work goes on elsewhere when this stream is done.
        """
        kind = "guarded" if guard is not None else "cold" if cold else "warm"
        delay_ns = self._delay_ns[kind] + (0.0 if guard is None or replayed else random.random() * ASIDE_NS)
        tries_left = TRIES_AT_LONGEST
        while True:
            put = self._enqueue(work, prepare, cold, delay_ns, guard)
            in_time = not put.start.done
            if guard is not None:
                guard.after(put.returned)
            host_ns = self._stream.host_ns() - put.launched_ns
            if guard is None or replayed:
                self._stream.synchronize()
            else:
                self._refuse_lagging_work()
            if in_time:
                self._delay_ns[kind] = _next_delay(put.work_ns, cold=kind == "cold")
                return self._stream.elapsed_ns(put.start, put.stop)
            if put.ahead is not None:
                tries_left -= 1
                if not tries_left:
                    lasted_ns = self._stream.elapsed_ns(put.ahead, put.start)
                    raise never_in_time(LateTry(delay_ns, lasted_ns, put.work_ns, host_ns))
            delay_ns = min(max(_GROWTH * delay_ns, _GROWTH * put.work_ns, FIRST_DELAY_NS), LONGEST_DELAY_NS)

    def run_once(self, work: Work) -> None:
        """Run it untimed, and wait.  Raises ``TimerError`` if other streams always go on when this one is done.

        What it does there would not be timed, and the graph or the event pair that times the rest would not show it.
        """
        for _ in range(TRIES_TO_KEEP_UP):
            work()
            if not self._others_lag():
                return
        raise TimerError(_GOES_ON)

    def _refuse_lagging_work(self) -> None:
        """Wait for this stream and then for all; raise ``TimerError`` if the others take longer, again and again."""
        self._lags = self._lags + 1 if self._others_lag() else 0
        if self._lags >= MOST_LAGS:
            self._lags = 0
            raise TimerError(_GOES_ON)

    def _others_lag(self) -> bool:
        """Wait for this stream and then for all: whether the others take longer."""
        stream = self._stream
        stream.wait_for(stream.mark())
        before = stream.host_ns()
        stream.synchronize()
        return stream.host_ns() - before > LAG_NS

    def _enqueue(
        self, work: Work, prepare: Work | None, cold: bool, delay_ns: float, guard: SampleGuard | None
    ) -> _Enqueued:
        """Enqueue all that belongs to one reading."""
        stream = self._stream
        if prepare is not None:
            prepare()
        if cold and stream.has_persisting_lines:  # those of the preparation, too
            stream.end_persistence()
        if cold and guard is None:
            stream.flush_l2()
        ahead = stream.mark() if delay_ns >= LONGEST_DELAY_NS else None
        launched_ns = stream.host_ns()
        if delay_ns:
            stream.spin(round(delay_ns / self._ns_per_cycle))
        began = stream.host_ns()
        if guard is not None:
            guard.arm()
            if cold:
                stream.flush_l2()
        start = stream.mark()
        returned = work()
        stop = stream.mark()
        return _Enqueued(ahead, start, stop, launched_ns, stream.host_ns() - began, returned)

    def tick_ns(self) -> float:
        """The step of the event clock, from kernels of varied length."""
        lengths = itertools.cycle(varied_lengths(_TICK_READINGS))  # a reading that is retaken takes another one
        readings = [self.read(lambda: self._stream.spin(next(lengths))) for _ in range(_TICK_READINGS)]
        return tick_of(readings)

    def _spin_rate(self) -> float:
        """Nanoseconds per cycle of the spin kernel, once the GPU has been busy for 10 ms and left its idle clocks.

        A later change of clock does no harm: a delay that has become too short is noticed and lengthened.
        """
        stream = self._stream
        began = stream.host_ns()
        rates: list[float] = []
        while len(rates) < _RATES or stream.host_ns() - began < WAKE_NS:
            start = stream.mark()
            stream.spin(_RATE_CYCLES)
            stop = stream.mark()
            stream.synchronize()
            rates.append(stream.elapsed_ns(start, stop) / _RATE_CYCLES)
        return statistics.median(rates[-_RATES:])


def _next_delay(enqueue_ns: float, cold: bool) -> float:
    """Twice what the host needed this time; nothing if the flush alone hides it."""
    if cold and enqueue_ns <= FIRST_DELAY_NS:
        return 0.0
    return min(max(_GROWTH * enqueue_ns, FIRST_DELAY_NS), LONGEST_DELAY_NS)


def varied_lengths(count: int) -> list[int]:
    """Lengths in cycles, irregularly spaced from 500 to 20,500: their readings fall on many different ticks."""
    return [500 + 37 * index * index * index % 20_000 for index in range(count)]


def typical_reading(pairs: QueuedPairs, work: Work, readings: int) -> float:
    """Mean of the middle half of several readings, in ns, one before them dropped: resolves below one tick."""
    pairs.read(work)
    return middle([pairs.read(work) for _ in range(readings)])


def repeated(work: Work, times: int) -> Work:
    if times == 1:
        return work

    def batch() -> None:
        for _ in range(times):
            work()

    return batch


def middle(readings: Sequence[float]) -> float:
    """Mean of the middle half."""
    ordered = sorted(readings)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


class EmptyKernel(NamedTuple):
    """All in nanoseconds."""

    own_ns: float
    """One empty kernel inside a long graph."""
    replay_ns: float
    """Reading of an event pair around a graph's replay beyond its kernels, for graphs of many kernels."""
    single_replay_ns: float
    """The same for a graph of one kernel."""


def measure_empty_kernel(stream: WorkStream, pairs: QueuedPairs) -> EmptyKernel:
    """The reference for a timer's own overhead, by graphs in turns, so that a clock still rising favours none of them.

    A graph of N empty kernels reads ``replay + N * own``: two of different N tell both.  Raises ``TimerError``.
    """
    graphs = [stream.capture(repeated(stream.empty, count)) for count in (1, _FEW_LAUNCHES, _MANY_LAUNCHES)]
    turns = [[pairs.read(graph.launch) for graph in graphs] for _ in range(_EMPTY_READINGS + 1)]
    single, few, many = (middle(readings) for readings in zip(*turns[1:], strict=True))
    own = (many - few) / (_MANY_LAUNCHES - _FEW_LAUNCHES)
    return EmptyKernel(own, few - _FEW_LAUNCHES * own, single - own)
