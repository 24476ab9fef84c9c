"""Duration of an empty kernel by itself, and of a graph's replay beside its kernels.

The reference by which timers find their own overhead.  A graph of N empty kernels reads
``replay + N * own``: two graphs of different N tell both.
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_gpuperf.device.timers.queued import QueuedPairs, middle, repeated
from pytest_gpuperf.device.timers.stream import WorkStream

_FEW = 20
_MANY = 120
_READINGS = 9


class EmptyKernel(NamedTuple):
    """All in nanoseconds."""

    own_ns: float
    """One empty kernel inside a long graph."""
    replay_ns: float
    """Reading of an event pair around a graph's replay beyond its kernels, for graphs of many kernels."""
    single_replay_ns: float
    """The same for a graph of one kernel."""


def measure_empty_kernel(stream: WorkStream, pairs: QueuedPairs) -> EmptyKernel:
    """Takes 30 readings, the graphs by turns, so that a clock still rising makes none of them longer than another.

    Raises ``TimerError`` if graphs cannot be captured here.
    """
    graphs = [stream.capture(repeated(stream.empty, count)) for count in (1, _FEW, _MANY)]
    turns = [[pairs.read(graph.launch) for graph in graphs] for _ in range(_READINGS + 1)]
    single, few, many = (middle(readings) for readings in zip(*turns[1:], strict=True))
    own = (many - few) / (_MANY - _FEW)
    return EmptyKernel(own, few - _FEW * own, single - own)
