"""A GPU stream as a calculation: what takes how long on the host and on the device, and nothing else.

Costs are those of an H200 in nanoseconds: an event pair around nothing reads 1.3 us, every launch adds a
gap of 0.7 us on a stream and 30 ns in a graph, an empty kernel takes 0.6 us, clocks tick in 32 ns.
"""

from __future__ import annotations

import ctypes
import math
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import simulated_libcupti

from pytest_gpuperf.device import timers
from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.device.timers import cupti_records

TICK = 32.0
EMPTY = 608.0
GAP = 700.0
GRAPH_GAP = 30.0
GRAPH_LAUNCH = 1500.0
PAIR = 1300.0
FLUSH = 60_000.0
LAUNCH_COST = 4000.0
NS_PER_CYCLE = 0.5


class SimulatedMark:
    def __init__(self, stream: SimulatedStream, at_ns: float) -> None:
        self._stream = stream
        self.at_ns = at_ns

    @property
    def done(self) -> bool:
        return self.at_ns <= self._stream.now_ns

    def synchronize(self) -> None:
        self._stream.now_ns = max(self._stream.now_ns, self.at_ns)


class SimulatedGraph:
    def __init__(self, stream: SimulatedStream, kernels: list[Node]) -> None:
        self._stream = stream
        self._kernels = kernels
        self.nodes = len(kernels)

    def launch(self) -> None:
        if self._stream.capturing is not None:
            self._stream.capturing.append(self)
            return
        self._stream.now_ns += LAUNCH_COST
        self._stream.occupy(GRAPH_LAUNCH)
        self.execute()

    def execute(self) -> None:
        for node in self._kernels:
            if isinstance(node, SimulatedGraph):
                node.execute()
                continue
            self._stream.occupy(GRAPH_GAP)
            self._stream.execute(*node)


Node = tuple[str, float] | SimulatedGraph


class SimulatedStream:
    """``CudaStream``; ``kernel`` launches a kernel of known duration on it."""

    def __init__(self) -> None:
        self.now_ns = 0.0
        self.free_ns = 0.0
        self.elsewhere_ns = 0.0
        """When other streams are done."""
        self.flushes = 0
        self.log: list[str] = []
        self.capturing: list[Node] | None = None
        self.rate: Callable[[float], float] = lambda now_ns: NS_PER_CYCLE
        self.observer: Callable[[str, float, float], None] = lambda name, start, end: None

    def occupy(self, duration: float) -> None:
        self.free_ns = max(self.free_ns, self.now_ns) + duration

    def execute(self, name: str, duration: float) -> None:
        start = max(self.free_ns, self.now_ns)
        self.free_ns = start + duration
        self.log.append(name)
        self.observer(name, start, self.free_ns)

    def kernel(self, duration: float, name: str = "kernel") -> None:
        if self.capturing is not None:
            self.capturing.append((name, duration))
            return
        self.now_ns += LAUNCH_COST
        self.occupy(GAP)
        self.execute(name, duration)

    def empty(self) -> None:
        self.kernel(EMPTY, "empty")

    def spin(self, cycles: int) -> None:
        self.kernel(EMPTY + cycles * self.rate(self.now_ns), "spin")

    def flush_l2(self) -> None:
        self.flushes += 1
        self.now_ns += LAUNCH_COST
        self.execute("flush", FLUSH)

    def mark(self) -> SimulatedMark:
        self.now_ns += 500
        self.occupy(PAIR)
        return SimulatedMark(self, self.free_ns)

    def capture(self, work: Callable[[], None], times: int = 1) -> SimulatedGraph:
        self.capturing = []
        try:
            for _ in range(times):
                work()
            return SimulatedGraph(self, self.capturing)
        finally:
            self.capturing = None

    def host_ns(self) -> float:
        return self.now_ns

    def elapsed_ns(self, start: SimulatedMark, end: SimulatedMark) -> float:
        return TICK * (math.floor(end.at_ns / TICK) - math.floor(start.at_ns / TICK))

    def synchronize(self) -> None:
        if self.capturing is not None:
            raise TimerError("cannot be captured")
        self.now_ns = max(self.now_ns, self.free_ns, self.elsewhere_ns) + 5000


class CuptiError(Exception):
    """What the simulated CUPTI raises."""


class Kinds:
    CONCURRENT_KERNEL, MEMCPY, MEMSET, EXTERNAL_CORRELATION, DRIVER, RUNTIME = 10, 1, 2, 39, 4, 5


Activity = types.SimpleNamespace


class SimulatedCupti:
    """The part of cupti-python that the timer uses, recording what a ``SimulatedStream`` executes."""

    ActivityKind = Kinds
    ExternalCorrelationKind = types.SimpleNamespace(CUSTOM2=5)
    cuptiError = CuptiError  # noqa: N815 - the binding's own name
    activity_kernel10_dtype = simulated_libcupti.KERNEL
    activity_memcpy6_dtype = simulated_libcupti.MEMCPY
    activity_memset4_dtype = simulated_libcupti.MEMSET
    activity_external_correlation_dtype = simulated_libcupti.EXTERNAL_CORRELATION

    def __init__(self, stream: SimulatedStream) -> None:
        self.enabled: set[int] = set()
        self.pushed: list[int] = []
        self.records: list[Activity] = []
        self.dropped = 0
        self.lose: Callable[[Activity], bool] = lambda record: False
        self.invalid = False
        self.flushes: list[int] = []
        self.hold_back = False
        self._correlation = 0
        self._stream = stream
        stream.observer = self.observe

    def observe(self, name: str, start: float, end: float) -> None:
        self._correlation += 1
        if self.pushed and Kinds.EXTERNAL_CORRELATION in self.enabled and Kinds.DRIVER in self.enabled:
            self.add(kind=Kinds.EXTERNAL_CORRELATION, external_kind=5, external_id=self.pushed[-1], start=0, end=0)
        kind = Kinds.MEMSET if name == "flush" else Kinds.CONCURRENT_KERNEL
        if kind in self.enabled:
            first = int(start // TICK * TICK)
            last = first if self.invalid else int(end // TICK * TICK)
            self.add(kind=kind, name=name, start=first, end=last)
        if Kinds.DRIVER in self.enabled:
            self.add(kind=Kinds.DRIVER, start=0, end=1)

    def add(self, **fields: Any) -> None:
        record = Activity(correlation_id=self._correlation, **fields)
        if not self.lose(record):
            self.records.append(record)

    def get_timestamp(self) -> int:
        return int(self._stream.now_ns)

    def check_status(self, status: int) -> None:
        if status:
            raise CuptiError(f"status {status}")

    def activity_enable(self, kind: int) -> None:
        self.enabled.add(kind)

    def activity_disable(self, kind: int) -> None:
        self.enabled.remove(kind)

    def activity_push_external_correlation_id(self, kind: int, number: int) -> None:
        assert kind == 5
        self.pushed.append(number)

    def activity_pop_external_correlation_id(self, kind: int) -> int:
        assert kind == 5
        return self.pushed.pop()

    def hand_over(self, forced: int) -> None:
        self.flushes.append(forced)
        if self.hold_back and not forced:
            return
        # Buffers arrive in no particular order.
        self.complete(list(reversed(self.records)))
        self.records.clear()

    def activity_get_num_dropped_records(self, context: int, stream: int, address: int) -> None:
        ctypes.c_size_t.from_address(address).value = self.dropped


@contextmanager
def installed(monkeypatch: Any, binding: Any, library: Any = None) -> Iterator[None]:
    """``from cupti import cupti`` gives ``binding``; None: the import fails.  ``library`` is what it has loaded.

    Without one none is found, not even a real one that an earlier test on a GPU has loaded.
    """
    package = types.ModuleType("cupti")
    if binding is not None:
        package.cupti = binding  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupti", package)
        patch.setattr(cupti_records, "SONAMES", ())
        if library is not None:
            patch.setattr(cupti_records, "loaded_library", lambda: library)
        yield


def opened(monkeypatch: Any, stream: SimulatedStream, name: Any = None) -> Any:
    """A timer on ``stream``, by the package's own ``open_timer``."""
    with monkeypatch.context() as patch:
        patch.setattr(timers, "CudaStream", lambda device: stream)
        return timers.open_timer(None, name)
