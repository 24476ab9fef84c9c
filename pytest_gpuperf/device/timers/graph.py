"""CUDA graphs of many unrolled launches: no host between them, and hardly a gap.

* warm: a sample is one replay of N launches, less the measured overhead of a replay, divided by N.  N is
  chosen so that the overhead is at most 1 % of the replay and the replay lasts 1,000 ticks.
* cold, or with a ``reset``: a sample is one replay of a graph of **one** run behind the flush, less the
  measured overhead of such a replay.  Only the first run of a longer graph would be cold.  A flush
  between the launches inside the graph would have to be subtracted again; but it takes many times as long as
  a short kernel, so its jitter would drown the difference, and a flush that follows a kernel writes back
  what the kernel left, so the difference would not be the kernel's time.
* the same of several workloads that are compared and are a kernel each: a sample is a plain launch, less the
  measured overhead of one.  Where a graph lies makes its cold replays longer or shorter, by 0.02 to 0.05 us on an H200,
  where blocks of equal kernels of 20 us scattered by 1.7 times as much as with plain launches.

Replays and launches are queued behind a delay or the flush, so what the host does for them is never timed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers.empty import measure_empty_kernel
from pytest_gpuperf.device.timers.errors import TimerError, TimerUnavailable
from pytest_gpuperf.device.timers.events import READINGS, TICKS_PER_SAMPLE, launches_per_sample, positive_time
from pytest_gpuperf.device.timers.queued import QueuedPairs, Work, typical_reading
from pytest_gpuperf.device.timers.stream import CapturedGraph, WorkStream
from pytest_gpuperf.evidence import CacheMode, TimerName

MOST_NODES = 1000
"""Bound of a graph; much larger ones have crashed drivers and cost seconds to instantiate."""
_OVERHEAD_SHARE = 100


def open_timer(stream: WorkStream) -> Timer:
    """The graph timer on ``stream``, calibrated.  Raises ``TimerUnavailable`` if graphs do not work here."""
    try:
        return GraphTimer(stream)
    except TimerError as error:
        raise TimerUnavailable("graph", str(error), "update the GPU driver, or use --gpuperf-timer=events") from error


class GraphTimer:
    """``Timer`` by replays of a captured graph."""

    name: TimerName = "graph"

    def __init__(self, stream: WorkStream) -> None:
        self._stream = stream
        self._pairs = QueuedPairs(stream)
        empty = measure_empty_kernel(stream, self._pairs)
        self._replay_ns = empty.replay_ns
        self._single_replay_ns = empty.single_replay_ns
        self._launch_ns = typical_reading(self._pairs, stream.empty, READINGS) - empty.own_ns
        self.overhead_ns = empty.single_replay_ns
        self.tick_ns = self._pairs.tick_ns()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """See ``Timer``.  One graph length for all slots, so that none is favoured."""
        singles = {id(slot.run): self._captured(slot.run, 1) for slot in slots}
        if cache == "cold" or any(slot.reset for slot in slots):
            if len(singles) > 1 and all(graph.one_kernel for graph in singles.values()):
                return [self._take(slot, slot.run, self._launch_ns, cache) for slot in slots]
            return [self._take(slot, singles[id(slot.run)].launch, self._single_replay_ns, cache) for slot in slots]
        length = self._length(list(singles.values()))
        runs = {id(slot.run): slot.run for slot in slots}
        graphs = singles if length == 1 else {key: self._captured(run, length) for key, run in runs.items()}
        overhead = self._single_replay_ns if length == 1 else self._replay_ns
        return [self._take(slot, graphs[id(slot.run)].launch, overhead, cache, length) for slot in slots]

    def _captured(self, run: Work, length: int) -> CapturedGraph:
        if length == 1:
            run()  # loads lazily loaded modules, which a capture does not survive
            self._stream.synchronize()

        def launches() -> None:
            for _ in range(length):
                run()

        graph = self._stream.capture(launches)
        if graph.nodes == 0:
            raise TimerError(
                "nothing was captured: the workload launches nothing, or launches on another stream. Launch on "
                "gpu.stream (CuPy and PyTorch do by themselves), or install the CUPTI timer "
                "(pip install 'pytest-gpuperf[cupti]'), which sees all streams"
            )
        return graph

    def _length(self, singles: Sequence[CapturedGraph]) -> int:
        """Runs per graph, within the bound on nodes."""
        shortest = min(typical_reading(self._pairs, graph.launch, 3) for graph in singles) - self._single_replay_ns
        most = max(1, MOST_NODES // max(graph.nodes for graph in singles))
        wanted = max(TICKS_PER_SAMPLE * self.tick_ns, _OVERHEAD_SHARE * self._replay_ns)
        return launches_per_sample(shortest, wanted, most)

    def _take(self, slot: Slot, work: Work, overhead_ns: float, cache: CacheMode, length: int = 1) -> list[float]:
        """Samples of ``work``, which does the slot's run ``length`` times."""
        cold = cache == "cold"
        readings = [self._pairs.read(work, prepare=slot.reset, cold=cold) for _ in range(slot.samples + 1)]
        return [positive_time((reading - overhead_ns) / length) for reading in readings[1:]]
