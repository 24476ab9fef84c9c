"""Another process's workload and this one's: messages, a timer that measures on either side, and the comparison's.

The process that gates measures its own slots and asks the other one, which waits in the middle of the same test of
another revision, for its slots.  A request is answered when the GPU is idle again, so that never more than one of the
two has work in flight.  What a coin cannot randomise is the process itself: see ``judge.decision.over_processes``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Literal, NoReturn

import msgspec

from pytest_gpuperf.device.interface import Device, Slot, Timer, WorkloadTimer
from pytest_gpuperf.model.evidence import Record
from pytest_gpuperf.model.limits import Limits, TimerName
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.time_record import CacheMode
from pytest_gpuperf.timing.blocks import Sides, pad_of
from pytest_gpuperf.timing.elapsed import ElapsedTimer
from pytest_gpuperf.timing.rounds import Workload

MOST_BYTES = 64 << 20
"""Largest message; the samples of a call take some kilobytes."""
SHORT_NS, PROCESS_NS = 10_000.0, 500.0
"""Below ``SHORT_NS`` two processes that run the same differ by up to about ``PROCESS_NS``: measured on H200s with an
addition of 4.8 us (between -2.8 and +2.4 %) and with three kernels of 7 us together (6.3 %)."""
REQUEST_TIMEOUT_S = 4 * 3600.0
"""Wait of the other process for the next message; the end of the process that gates ends it anyway."""


class OtherSideLost(Exception):
    """The other process has ended, does not answer, or failed: there is no verdict on times."""


def limits_of_processes(limits: Limits, duration_ns: float) -> Limits:
    """Those asked for, and wider ones for work of a few microseconds: half a microsecond and twice that."""
    least = round(PROCESS_NS / max(duration_ns, PROCESS_NS), 3) if duration_ns < SHORT_NS else 0.0
    return limits.at_least(least)


# --- messages --------------------------------------------------------------------------------------


class Started(Record, frozen=True, tag="started"):
    """The first message of the other process: it can run tests now."""

    tests: frozenset[str] = frozenset()
    """Node ids of those that may measure something, where a revision's process sends it."""


class RunTest(Record, frozen=True, tag="run"):
    """Asks the other side to run a test; it answers ``TestEnded``."""

    node_id: str
    following: str = ""
    """The test that is likely to be next: fixtures that it shares with this one stay set up."""
    how: Literal["describe", "time", "pair"] = "describe"
    """Without times, so that it ends where it reads one; with them; or stopping at each callable, by ``Ready``.

    For the latter two this side holds the GPU.
    """


class Measure(Record, frozen=True, tag="measure"):
    """Asks for the samples of slots, in this order; the answer is ``RemoteSamples``."""

    slots: tuple[tuple[int, int], ...]
    """Samples of each slot, and dropped samples before them."""
    cache: CacheMode
    timer: TimerName
    """``elapsed`` for elapsed times, whatever the test asks for there."""
    pad_bytes: int
    """Memory kept for reuse is given back before, and so much is taken, so that its arrays lie elsewhere; 0: as is."""


class Resume(Record, frozen=True, tag="resume"):
    """Lets the other side go on with its test."""


class Ready(Record, frozen=True, tag="ready"):
    """The other side waits at this workload, which it has run and checked."""

    workload: str
    foreign: tuple[str, ...] = ()
    """Modules, libraries and files of another working tree that it used, a line each."""


class RemoteSamples(Record, frozen=True, tag="samples"):
    times: list[list[float]] = msgspec.field(default_factory=list)
    """Nanoseconds, slot by slot."""
    kernels: dict[str, float] = msgspec.field(default_factory=dict)
    """Of each kernel in the last slot, by symbol."""
    problem: str = ""
    """Why there are none."""


class TestEnded(Record, frozen=True, tag="ended"):
    """The test is over, and nothing of it is in flight."""

    __test__ = False

    why: str
    """Its failure or the reason of its skip; empty if it passed, and if there is no such test."""
    failed: bool = False
    """Its evidence is complete, but its results may be wrong."""
    evidence: TestEvidence | None = None
    """Its evidence, with machine code."""
    foreign: tuple[str, ...] = ()
    """As of ``Ready``."""
    last: bool = False
    """The process ends, for the test has left it without a GPU."""


class Link:
    """Messages to and from the other process, over two pipes."""

    def __init__(self, reading: int, writing: int) -> None:
        """Takes both file descriptors over."""
        self._reading, self._writing = Connection(reading, writable=False), Connection(writing, readable=False)

    def send(self, message: Record) -> None:
        """Raises ``OtherSideLost`` if nobody is there to read it."""
        try:
            self._writing.send_bytes(msgspec.json.encode(message))
        except OSError as problem:
            raise OtherSideLost(f"the other process has ended ({problem.strerror or problem})") from None

    def receive(self, kind: Any, timeout_s: float = REQUEST_TIMEOUT_S) -> Any:
        """The next message, of one of the types of ``kind``.  Raises ``OtherSideLost``."""
        try:
            if not self._reading.poll(timeout_s):
                raise OtherSideLost("the other process did not answer in time")
            return msgspec.json.decode(self._reading.recv_bytes(MOST_BYTES), type=kind)
        except (EOFError, OSError):
            raise OtherSideLost("the other process has ended") from None
        except msgspec.DecodeError as problem:
            raise OtherSideLost(f"the other process sent an unexpected message ({problem})") from None

    def close(self) -> None:
        self._reading.close()
        self._writing.close()


# --- in the process that gates ---------------------------------------------------------------------


def run_there() -> NoReturn:
    """Placeholder of the other side's workload in a ``Slot``; it is never called."""
    raise AssertionError("the other side's workload runs in its own process")


class TwoSidedTimer:
    """A timer that measures slots of ``run_there`` on the other side, and all others here."""

    def __init__(self, timer: WorkloadTimer, link: Link, timeout_s: float) -> None:
        """``timeout_s``: how long samples of the other side may take."""
        self._timer, self._link, self._timeout_s = timer, link, timeout_s
        self.tick_ns, self._name = timer.tick_ns, timer.name
        self.pad_bytes = 0
        """The other side takes so much memory before its next samples."""
        self.kernels_there: dict[str, float] = {}
        """Of the other side's latest slot: ns per sample of each kernel, by symbol."""

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """As ``Timer.measure``; raises ``OtherSideLost`` too."""
        times: list[list[float]] = []
        for there, group in itertools.groupby(slots, lambda slot: slot.run is run_there):
            times += (self._there if there else self._timer.measure)(list(group), cache)
        return times

    def _there(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        wanted = tuple((slot.samples, slot.dropped) for slot in slots)
        self._link.send(Measure(slots=wanted, cache=cache, timer=self._name, pad_bytes=self.pad_bytes))
        self.pad_bytes = 0
        answer: RemoteSamples = self._link.receive(RemoteSamples, self._timeout_s)
        if answer.problem:
            raise OtherSideLost(f"the other side failed: {answer.problem}")
        self.kernels_there = answer.kernels
        return answer.times


class ProcessReference:
    """A ``Reference``: the workload of the other process, which waits at it, and that of this one."""

    remarks: tuple[str, ...] = ()

    def __init__(self, device: Device, timer: WorkloadTimer, link: Link, workload: Workload, timeout_s: float) -> None:
        self.timer = TwoSidedTimer(timer, link, timeout_s)
        self._pad = MemoryPad(device)
        self.sides: Sides = Workload(run_there, None, workload.cache), workload  # it resets itself there

    def place(self, call: int, coin: random.Random) -> None:  # noqa: ARG002 code stays where each process has it
        self._pad.move(pad_of(coin))
        self.timer.pad_bytes = pad_of(coin)

    def finish(self) -> None: ...


# --- in the other process --------------------------------------------------------------------------


class MemoryPad:
    """Where a callable's own allocations will lie: behind a pad that is drawn anew."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._pad: Any = None

    def move(self, pad_bytes: int) -> None:
        """Give memory back that is kept for reuse, and take a pad of so many bytes before anything is taken again."""
        self._pad = None
        self._device.synchronize()
        self._device.release_unused()
        self._pad = self._device.arrays.empty(pad_bytes, "uint8")


def serve_samples(link: Link, device: Device, timer: Timer, workload: Workload) -> None:
    """Take the samples that are asked for until the other process says to resume.  Raises ``OtherSideLost``."""
    pad = MemoryPad(device)
    while not isinstance(request := link.receive(Measure | Resume), Resume):
        try:
            if request.pad_bytes:
                pad.move(request.pad_bytes)
            slots = [workload.slot(*counts) for counts in request.slots]
            times = (ElapsedTimer(timer) if request.timer == "elapsed" else timer).measure(slots, request.cache)
            device.synchronize()
        except Exception as problem:  # noqa: BLE001 whatever it is, the process that asked is to know it
            link.send(RemoteSamples(problem=f"{type(problem).__name__}: {problem}"))
        else:
            kernels = next(map(dict, reversed(timer.kernel_breakdown)), {})
            link.send(RemoteSamples(times=times, kernels=kernels))
