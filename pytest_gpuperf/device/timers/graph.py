"""CUDA graphs of many unrolled launches: no host between them, and hardly a gap.

* warm: a sample is one replay of N launches, less the measured overhead of a replay, divided by N.  N is
  chosen so that the overhead is at most 1 % of the replay and the replay lasts 1,000 ticks.
* cold, or with a ``reset``: a sample is one replay of a graph of **one** run behind the flush, less the
  measured overhead of such a replay.  Only the first run of a longer graph would be cold.  A flush inside the graph
  would have to be subtracted again, and its jitter would drown the time of a short kernel.

  The event behind such a replay notices its end in steps: on an H200 readings of one kernel lie in lumps 0.22 us
  apart, by where its code and commands lie.  Along 32 kernels of 21 us, each 15 ns longer than the one before,
  readings strayed by 48 ns where each had a graph, and by no more than noise where each had twelve.  So a slot has
  several graphs that take turns.

* a slot of a single sample that drops none is one long launch, between two events as it is.

Replays are queued behind a delay or the flush, so what the host does for them is never timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.timers.events import TICKS_PER_SAMPLE, launches_per_sample, positive_time
from pytest_gpuperf.device.timers.queued import QueuedPairs, Work, measure_empty_kernel, repeated, typical_reading
from pytest_gpuperf.device.timers.stream import CapturedGraph, WorkStream
from pytest_gpuperf.device.timers.timer_errors import TimerError, TimerUnavailable
from pytest_gpuperf.model.evidence import CacheMode
from pytest_gpuperf.model.timer_names import TimerName

MOST_NODES = 1000
"""Bound of a graph, and of graphs that take turns together unless each slot has but one; much larger ones have crashed
drivers and cost seconds to instantiate."""
SAMPLES_PER_GRAPH = 3
"""Samples of single runs in a graph; a pilot's slots have as many, so it sees what a larger block will."""
_OVERHEAD_SHARE = 100


def open_timer(stream: WorkStream) -> Timer:
    """The graph timer on ``stream``, calibrated.  Raises ``TimerUnavailable`` if graphs do not work here."""
    try:
        return GraphTimer(stream)
    except TimerError as error:
        raise TimerUnavailable("graph", str(error), "update the GPU driver, or use --gpuperf-timer=events") from error


class _Captured(NamedTuple):
    """A graph with what the captured run returned: a replay writes there again."""

    graph: CapturedGraph
    returned: Any

    def replay(self) -> Any:
        """Enqueue it."""
        self.graph.launch()
        return self.returned


class GraphTimer:
    """``Timer`` by replays of a captured graph."""

    name: TimerName = "graph"
    kernel_breakdown = ()
    pauses_ns = ()

    def __init__(self, stream: WorkStream) -> None:
        self._stream = stream
        self._pairs = QueuedPairs(stream)
        empty = measure_empty_kernel(stream, self._pairs)
        self._replay_ns = empty.replay_ns
        self._single_replay_ns = empty.single_replay_ns
        self.overhead_ns = empty.single_replay_ns
        self.tick_ns = self._pairs.tick_ns()

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """See ``Timer``.  All slots are timed in the same way, so that none is favoured."""
        if all(slot.samples == 1 and not slot.dropped for slot in slots):
            return [self._without_graph(slot, cold=cache == "cold") for slot in slots]
        runs = {id(slot.run): slot.run for slot in slots}
        for run in runs.values():
            self._pairs.run_once(run)  # loads lazily loaded modules, which a capture does not survive
        if cache == "cold" or any(slot.reset or slot.guard for slot in slots):
            return self._one_by_one(slots, cold=cache == "cold")
        singles = {key: self._captured(run, 1) for key, run in runs.items()}
        length = self._length([single.graph for single in singles.values()])
        graphs = singles if length == 1 else {key: self._captured(run, length) for key, run in runs.items()}
        for key, graph in graphs.items():
            _require_same_work(length * singles[key].graph.nodes, graph.graph.nodes)
        overhead = self._single_replay_ns if length == 1 else self._replay_ns
        return [self._take(slot, [graphs[id(slot.run)]], overhead, length=length) for slot in slots]

    def _one_by_one(self, slots: Sequence[Slot], *, cold: bool) -> list[list[float]]:
        """A replay of one run for each sample, by graphs that all lie elsewhere."""
        graphs = [[self._captured(slot.run, 1, keep=slot.guard is not None)] for slot in slots]
        most = MOST_NODES // sum(captured.graph.nodes for (captured,) in graphs)
        for slot, of_slot in zip(slots, graphs, strict=True):
            more = min(-(-slot.samples // SAMPLES_PER_GRAPH), most) - 1
            of_slot += [self._captured(slot.run, 1, keep=slot.guard is not None) for _ in range(more)]
        promised: dict[int, int] = {}
        for slot, of_slot in zip(slots, graphs, strict=True):
            for captured in of_slot:
                nodes = captured.graph.nodes
                _require_same_work(promised.setdefault(id(slot.run), nodes), nodes)
        return [
            self._take(slot, of_slot, self._single_replay_ns, cold=cold)
            for slot, of_slot in zip(slots, graphs, strict=True)
        ]

    def _without_graph(self, slot: Slot, *, cold: bool) -> list[float]:
        """One long launch: it needs no graph, for whose capture its code has to be loaded by one launch more.

        A short one, whose length is only asked for, is read as half of the reading at least.
        """
        reading = self._pairs.read(slot.run, prepare=slot.reset, cold=cold, guard=slot.guard)
        return [max(reading - self.overhead_ns, reading / 2)]

    def _captured(self, run: Work, length: int, *, keep: bool = False) -> _Captured:
        """A graph of the run; to ``keep`` what it returned keeps that memory from being reused, too."""
        returned: list[Any] = []
        graph = self._stream.capture(lambda: returned.append(repeated(run, length)()))
        if graph.nodes == 0:
            raise TimerError(
                "nothing was captured: the workload launches nothing, or launches on another stream. Launch on "
                "gpu.stream (CuPy and PyTorch do by themselves), or install the CUPTI timer "
                "(pip install 'pytest-gpuperf[cupti]'), which sees all streams"
            )
        return _Captured(graph, returned[0] if keep else None)

    def _length(self, singles: Sequence[CapturedGraph]) -> int:
        """Runs per graph, within the bound on nodes."""
        shortest = min(typical_reading(self._pairs, graph.launch, 3) for graph in singles) - self._single_replay_ns
        most = max(1, MOST_NODES // max(graph.nodes for graph in singles))
        wanted = max(TICKS_PER_SAMPLE * self.tick_ns, _OVERHEAD_SHARE * self._replay_ns)
        return launches_per_sample(shortest, wanted, most)

    def _take(
        self, slot: Slot, graphs: Sequence[_Captured], overhead_ns: float, *, cold: bool = False, length: int = 1
    ) -> list[float]:
        """Samples by ``graphs`` in turns, each of which does the slot's run ``length`` times."""
        replays = [graphs[index % len(graphs)].replay for index in range(slot.dropped + slot.samples)]
        readings = [
            self._pairs.read(replay, prepare=slot.reset, cold=cold, guard=slot.guard, replayed=True)
            for replay in replays
        ]
        return [positive_time((reading - overhead_ns) / length) for reading in readings[slot.dropped :]]


def _require_same_work(first: int, now: int) -> None:
    """Raise ``TimerError`` if a capture holds fewer kernels, copies and memsets than the run's first one promised."""
    if now < first:
        raise TimerError(
            f"the workload did not do the same whenever it was called: of {first} kernels and copies, by its first "
            f"captured run, later runs launched {now}. Take out what it keeps from one call for the next"
        )
