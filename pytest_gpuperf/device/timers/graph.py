"""CUDA graphs of many unrolled launches: no host between them, and hardly a gap.

* warm: a sample is one replay of N launches, less the measured overhead of a replay, divided by N.  N is
  chosen so that the overhead is at most 1 % of the replay and the replay lasts 1,000 ticks.
* cold, or with a ``reset``: a sample is one replay of a graph of **one** run behind the flush, less the
  measured overhead of such a replay.  Only the first run of a longer graph would be cold.  A flush inside the graph
  would have to be subtracted again, and its jitter would drown the time of a short kernel.

  The event behind such a replay notices its end in steps: on an H200 readings of one kernel lie in lumps 0.22 us
  apart, by where its code and commands lie.  Along 32 kernels of 21 us, each 15 ns longer than the one before,
  readings strayed by 48 ns where each had a graph, and by no more than noise where each had twelve.  So a slot has
  several graphs, interleaved.

* a slot of a single sample that drops none is one long launch, between two events as it is.

Replays are queued behind a delay or the flush, so what the host does for them is never timed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.timers.stream import CudaStream, Graph, QueuedPairs, Work, measure_empty_kernel, middle
from pytest_gpuperf.model.limits import TimerName
from pytest_gpuperf.model.time_record import CacheMode

MOST_NODES = 1000
"""Bound of a graph, and of interleaved graphs together unless each slot has but one; much larger ones have crashed
drivers and cost seconds to instantiate."""
SAMPLES_PER_GRAPH = 3
"""Samples of single runs in a graph; a pilot's slots have as many, so it sees what a larger block will."""
TICKS_PER_SAMPLE = 1000
_OVERHEAD_SHARE = 100
_NOTHING_SEEN = (
    "the timed stream was idle: the workload launches nothing, or launches on another stream; launch on gpu.stream, or "
    "pip install 'pytest-gpuperf[cupti]', whose timer sees all streams"
)


class GraphTimer:
    """``Timer`` by replays of a captured graph.  Opening one raises ``TimerError`` if graphs do not work here."""

    name: TimerName = "graph"
    kernel_breakdown = elapsed_ns = ()

    def __init__(self, stream: CudaStream) -> None:
        self._stream = stream
        self._pairs = QueuedPairs(stream)
        _, self._replay_ns, self.overhead_ns = measure_empty_kernel(stream, self._pairs)
        self.tick_ns = self._pairs.tick_ns()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """See ``Timer``.  All slots are timed in the same way, so that none is favoured."""
        cold = cache == "cold"
        if all(slot.samples == 1 and not slot.dropped for slot in slots):
            return [self._without_graph(slot, cold=cold) for slot in slots]
        runs = {id(slot.run): slot.run for slot in slots}
        for run in runs.values():
            self._pairs.run_once(run)  # loads lazily loaded modules, which a capture does not survive
        if cold or any(slot.reset for slot in slots):
            return self._one_by_one(slots, cold=cold)
        singles = {key: self._captured(run, 1) for key, run in runs.items()}
        length = self._length(list(singles.values()))
        graphs = singles if length == 1 else {key: self._captured(run, length) for key, run in runs.items()}
        return [self._take(slot, [graphs[id(slot.run)]], length=length) for slot in slots]

    def trace(self, slot: Slot) -> tuple[()]:  # noqa: ARG002 a graph is replayed unseen
        return ()

    def _one_by_one(self, slots: Sequence[Slot], *, cold: bool) -> list[list[float]]:
        """A replay of one run for each sample, by graphs that all lie elsewhere."""
        graphs = [[self._captured(slot.run, 1)] for slot in slots]
        most = MOST_NODES // sum(first.nodes for (first,) in graphs)
        for slot, of_slot in zip(slots, graphs, strict=True):
            more = min(math.ceil(slot.samples / SAMPLES_PER_GRAPH), most) - 1
            of_slot += [self._captured(slot.run, 1) for _ in range(more)]
        return [self._take(slot, of_slot, cold=cold) for slot, of_slot in zip(slots, graphs, strict=True)]

    def _without_graph(self, slot: Slot, *, cold: bool) -> list[float]:
        """One long launch: it needs no graph, for whose capture its code has to be loaded by one launch more.

        A short one, whose length is only asked for, is read as half of the reading at least.
        """
        reading = self._pairs.read(slot.run, prepare=slot.reset, cold=cold)
        return [max(reading - self.overhead_ns, reading / 2)]

    def _captured(self, run: Work, length: int) -> Graph:
        """A graph of ``length`` runs."""
        graph = self._stream.capture(run, length)
        if graph.nodes == 0:
            raise TimerError(_NOTHING_SEEN)
        return graph

    def _length(self, singles: Sequence[Graph]) -> int:
        """Runs per graph, so that the shortest workload's sample is long enough, within the bound on nodes."""
        readings = [[self._pairs.read(graph.launch) for _ in range(4)][1:] for graph in singles]
        shortest_ns = min(map(middle, readings)) - self.overhead_ns
        wanted_ns = max(TICKS_PER_SAMPLE * self.tick_ns, _OVERHEAD_SHARE * self._replay_ns)
        most = max(1, MOST_NODES // max(graph.nodes for graph in singles))
        return min(math.ceil(wanted_ns / max(shortest_ns, 1.0)), most)

    def _take(self, slot: Slot, graphs: Sequence[Graph], *, cold: bool = False, length: int = 1) -> list[float]:
        """Samples by ``graphs`` in turns, each of which does the slot's run ``length`` times."""
        overhead_ns = self.overhead_ns if length == 1 else self._replay_ns
        readings = [
            self._pairs.read(graphs[index % len(graphs)].launch, prepare=slot.reset, cold=cold)
            for index in range(slot.dropped + slot.samples)
        ]
        times = [(reading - overhead_ns) / length for reading in readings[slot.dropped :]]
        if min(times) <= 0:
            raise TimerError(_NOTHING_SEEN)
        return times
