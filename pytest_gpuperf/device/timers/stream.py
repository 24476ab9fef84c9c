"""The one stream that timers work on, and the few things they do with it: all that a timer knows of the GPU.

If the host is slower to enqueue than the GPU is to run, an event pair times the host.  So the GPU is kept
busy first: by the L2 flush, and by a kernel that spins for a bounded number of cycles.  If the start event is no longer
pending when the stop event is enqueued, the sample is taken again behind a longer delay.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.device.timers.resolution import tick_of
from pytest_gpuperf.garbage import no_collection

_KERNELS = """
extern "C" __global__ void gpuperf_empty() {}
extern "C" __global__ void gpuperf_spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""

Work = Callable[[], Any]
"""Enqueues on the current stream."""

FIRST_DELAY_NS = 30_000.0
LONGEST_DELAY_NS = 20_000_000.0
TRIES_AT_LONGEST = 3
"""One hiccup of the host behind the longest delay proves nothing; so many in a row do."""
LAG_NS = 200_000.0
"""For longer the host alone does not look away ..."""
TRIES_TO_KEEP_UP = 8
"""... in so many runs, of which one has to be over with its stream."""
WAKE_NS = 10_000_000.0
_RATE_CYCLES = 200_000
_RATES = 3
TICK_READINGS = 64
_FEW_LAUNCHES = 20
_MANY_LAUNCHES = 120
_EMPTY_READINGS = 9


class CudaStream:
    """A device's CuPy stream, which has to be the current one."""

    def __init__(self, device: Any) -> None:
        import cupy  # noqa: PLC0415 there is none without a GPU

        self._cupy = cupy
        self._stream = device.stream
        self.flush_l2: Work = device.flush_l2
        """Enqueues a write that evicts the L2."""
        self.synchronize: Work = device.synchronize
        """Waits until the GPU is idle, on all streams."""
        module = cupy.RawModule(code=_KERNELS)
        self._empty, self._spin = map(module.get_function, ("gpuperf_empty", "gpuperf_spin"))

    def empty(self) -> None:
        """Enqueue a kernel that does nothing."""
        self._empty((1,), (1,), ())

    def spin(self, cycles: int) -> None:
        """Enqueue a kernel of one thread that is busy for so many SM clock cycles, then ends by itself."""
        self._spin((1,), (1,), (self._cupy.int64(cycles),))

    def mark(self) -> Any:
        """Enqueue an event, whose time the GPU notes: ``done`` once it is there, ``synchronize()`` waits for it."""
        event = self._cupy.cuda.Event()
        event.record(self._stream)
        return event

    def elapsed_ns(self, start: Any, end: Any) -> float:
        """GPU time between two marks that are done."""
        return float(self._cupy.cuda.get_elapsed_time(start, end)) * 1e6

    def host_ns(self) -> float:
        """The host's clock."""
        return time.perf_counter_ns()

    def capture(self, work: Work, times: int = 1) -> Graph:
        """The graph of what ``work`` enqueues so many times, which is not run.

        Garbage collection waits meanwhile, for unloading a module would void the capture.  Raises ``TimerError`` if it
        cannot be captured.
        """
        try:
            with no_collection():
                self._stream.begin_capture()
                try:
                    for _ in range(times):
                        work()
                except BaseException:  # left in capture, the stream would refuse every later call
                    with contextlib.suppress(self._cupy.cuda.runtime.CUDARuntimeError):
                        self._stream.end_capture()
                    raise
                return Graph(self._stream.end_capture(), self._stream)
        except RuntimeError as error:  # CUDA errors of CuPy and PyTorch are RuntimeErrors
            raise TimerError(
                f"the workload cannot be captured in a CUDA graph ({error}); it probably waits for the GPU, copies to "
                "the host, allocates, or launches on the default stream instead of gpu.stream. Take that out of the "
                "measured function, or install the CUPTI timer (pip install 'pytest-gpuperf[cupti]'), which needs no "
                "capture"
            ) from error


class Graph:
    """A captured CUDA graph, ready to be replayed; ``nodes`` counts its kernels, copies and the like."""

    def __init__(self, graph: Any, stream: Any) -> None:
        from cuda.bindings import driver  # noqa: PLC0415 an extra

        self._graph, self._stream = graph, stream
        _, _, count = driver.cuGraphGetNodes(driver.CUgraph(graph.graph), 0)
        self.nodes = int(count)
        graph.upload(stream)

    def launch(self) -> None:
        """Enqueue a replay."""
        self._graph.launch(self._stream)


# --- event pairs around work that is enqueued before the GPU gets to it ---------------------------


class QueuedPairs:
    """Takes readings on one stream and remembers how long a delay they need."""

    def __init__(self, stream: CudaStream) -> None:
        self._stream = stream
        self._ns_per_cycle = self._spin_rate()
        self._delay_ns = {True: 0.0, False: FIRST_DELAY_NS}

    def read(self, work: Work, *, prepare: Work | None = None, cold: bool = False) -> float:
        """Nanoseconds from before ``work`` to after it, overhead of the pair included.

        ``prepare`` is enqueued first, then the L2 flush if ``cold``; neither is timed.  Raises ``TimerError`` if
        ``work`` is not enqueued behind the longest delay of 20 ms before that is over, three times in a row.
        """
        delay_ns, tries_left = self._delay_ns[cold], TRIES_AT_LONGEST
        while True:
            start, stop, work_ns = self._enqueue(work, prepare, cold, delay_ns)
            in_time = not start.done
            self._stream.synchronize()
            if in_time:
                # twice what the host needed this time; nothing if the flush alone hides it
                hidden = cold and work_ns <= FIRST_DELAY_NS
                self._delay_ns[cold] = 0.0 if hidden else _longer(work_ns)
                return self._stream.elapsed_ns(start, stop)
            tries_left -= delay_ns >= LONGEST_DELAY_NS
            if not tries_left:
                raise TimerError(
                    f"the host took {work_ns / 1e6:.3g} ms to enqueue the work, too late for a delay of "
                    f"{LONGEST_DELAY_NS / 1e6:g} ms: the work waits for the GPU, the GPU is shared, or the host is "
                    "busy. To do: take synchronisation out of the measured function, unset CUDA_LAUNCH_BLOCKING, end "
                    "debuggers and other processes on this GPU, or pip install 'pytest-gpuperf[cupti]'",
                )
            delay_ns = _longer(max(delay_ns, work_ns))

    def _enqueue(self, work: Work, prepare: Work | None, cold: bool, delay_ns: float) -> tuple[Any, Any, float]:
        """The events around ``work``, and the nanoseconds that it took the host to enqueue it."""
        stream = self._stream
        if prepare is not None:
            prepare()
        if cold:
            stream.flush_l2()
        if delay_ns:
            stream.spin(round(delay_ns / self._ns_per_cycle))
        began = stream.host_ns()
        start = stream.mark()
        work()
        stop = stream.mark()
        return start, stop, stream.host_ns() - began

    def run_once(self, work: Work) -> None:
        """Run it untimed, and wait.  Raises ``TimerError`` if other streams go on when this one is done, in every try.

        What it does there would not be timed, and the graph that times the rest would not show it.
        """
        for _ in range(TRIES_TO_KEEP_UP):
            work()
            self._stream.mark().synchronize()
            before = self._stream.host_ns()
            self._stream.synchronize()
            if self._stream.host_ns() - before <= LAG_NS:
                return
        raise TimerError(
            "the workload still runs after the timed stream is done, so it uses another stream: launch on "
            "gpu.stream, or have the current stream wait for the others by events"
        )

    def tick_ns(self) -> float:
        """The step of the event clock, from kernels of varied length."""
        lengths = varied_lengths()
        return tick_of([self.read(lambda: self._stream.spin(next(lengths))) for _ in range(TICK_READINGS)])

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


def _longer(delay_ns: float) -> float:
    """Twice as long, within the bounds of a delay."""
    return min(max(2 * delay_ns, FIRST_DELAY_NS), LONGEST_DELAY_NS)


def varied_lengths() -> Iterator[int]:
    """Lengths in cycles, irregularly spaced from 500 to 20,500: their readings fall on many different ticks."""
    return (500 + 37 * index**3 % 20_000 for index in itertools.count())


def measure_empty_kernel(stream: CudaStream, pairs: QueuedPairs) -> tuple[float, float, float]:
    """Nanoseconds of an empty kernel in a long graph; and of a replay beyond its kernels: of many, and of one.

    A graph of N empty kernels reads ``replay + N * own``: two of different N tell both.  By graphs in turns, so that a
    clock still rising favours none of them.  Raises ``TimerError``.
    """
    graphs = [stream.capture(stream.empty, count) for count in (1, _FEW_LAUNCHES, _MANY_LAUNCHES)]
    passes = [[pairs.read(graph.launch) for graph in graphs] for _ in range(_EMPTY_READINGS + 1)]
    single, few, many = (middle(readings) for readings in zip(*passes[1:], strict=True))
    own = (many - few) / (_MANY_LAUNCHES - _FEW_LAUNCHES)
    return own, few - _FEW_LAUNCHES * own, single - own


def middle(readings: Sequence[float]) -> float:
    """Mean of the middle half."""
    ordered = sorted(readings)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])
