"""Turns of two processes on one GPU: what one asks of the other, and a timer that measures on either side.

The process that gates is the conductor: it measures its own slots, and asks the other process, which waits in the
middle of the same test of another revision, for its slots.  A request is answered when the GPU is idle again, so that
never more than one of the two has work in flight.  Which side's turn it is, is for ``blocks`` to draw.
"""

from __future__ import annotations

import itertools
import os
import select
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from pytest_gpuperf.device.interface import Device, Slot, Timer
from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import CacheMode, Identity
from pytest_gpuperf.model.timer_names import TimerName

_HEAD = struct.Struct("!I")
MOST_BYTES = 64 << 20
"""Of one message: a turn of a few hundred samples takes some kilobytes."""


class OtherSideLost(Exception):
    """The other process is gone or does not answer, or what it runs has failed: there is no verdict on times."""


# --- messages --------------------------------------------------------------------------------------


class RunTest(Record, frozen=True, tag="run"):
    """Asks the other side to run a test; it answers ``Arrived`` at each callable, and ``TestEnded``."""

    node_id: str


class Measure(Record, frozen=True, tag="measure"):
    """A turn: asks for the samples of slots, in this order; the answer is ``Taken``."""

    slots: tuple[tuple[int, int], ...]
    """Of each, its samples and those before them that are dropped."""
    cache: CacheMode


class TakePad(Record, frozen=True, tag="place"):
    """Asks for other addresses: memory kept for reuse is given back, and a pad taken; the answer is ``Done``."""

    pad_bytes: int


class GoOn(Record, frozen=True, tag="go on"):
    """Lets the other side go on with its test."""


class Quit(Record, frozen=True, tag="quit"):
    """Lets the other process end."""


class Arrived(Record, frozen=True, tag="arrived"):
    """The other side waits at this workload, which it has run and checked."""

    workload: str
    identity: Identity
    leaks: tuple[str, ...] = ()
    """Why it may have run code of another working tree, a line each."""


class Taken(Record, frozen=True, tag="taken"):
    """Times of a turn, nanoseconds, slot by slot."""

    times: list[list[float]]


class Done(Record, frozen=True, tag="done"):
    """What was asked for has been done."""


class TestEnded(Record, frozen=True, tag="ended"):
    """The test is over."""

    __test__ = False

    why: str
    """Its failure or the reason of its skip; empty if it passed."""


class Failed(Record, frozen=True, tag="failed"):
    """A turn could not be taken."""

    why: str


Kind = TypeVar("Kind")


class Link:
    """Messages to and from the other process, over two pipes."""

    def __init__(self, reading: int, writing: int) -> None:
        """Takes both file descriptors over."""
        self._reading, self._writing = reading, writing

    def send(self, message: Record) -> None:
        """Raises ``OtherSideLost`` if nobody is there to read it."""
        content = msgspec.json.encode(message)
        try:
            _write_all(self._writing, _HEAD.pack(len(content)) + content)
        except OSError as problem:
            raise OtherSideLost(f"the other process is gone ({problem.strerror or problem})") from None

    def receive(self, kind: type[Kind] | Any, timeout_s: float) -> Any:
        """The next message, of one of the types of ``kind``.  Raises ``OtherSideLost``."""
        ends = time.monotonic() + timeout_s
        (size,) = _HEAD.unpack(self._read(_HEAD.size, ends))
        if size > MOST_BYTES:
            raise OtherSideLost(f"the other process sent {size} bytes at once")
        try:
            return msgspec.json.decode(self._read(size, ends), type=kind)
        except msgspec.DecodeError as problem:
            raise OtherSideLost(f"the other process sent what was not asked for ({problem})") from None

    def _read(self, size: int, ends: float) -> bytes:
        found = b""
        while len(found) < size:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                raise OtherSideLost("the other process did not answer in time")
            part = os.read(self._reading, size - len(found))
            if not part:
                raise OtherSideLost("the other process is gone")
            found += part
        return found

    def close(self) -> None:
        for end in (self._reading, self._writing):
            os.close(end)


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


# --- the conductor's side --------------------------------------------------------------------------


def run_there() -> NoReturn:
    """Stands for the other side's workload in a ``Slot``; it is never called."""
    raise AssertionError("the other side's workload runs in its own process")


class TurnTimer:
    """A timer that measures slots of ``run_there`` on the other side, and all others here."""

    def __init__(self, timer: Timer, link: Link, patience_s: float) -> None:
        """``patience_s``: by so much longer than this side's turns may one of the other side take."""
        self._timer, self._link, self._patience_s = timer, link, patience_s
        self.name: TimerName = timer.name
        self.tick_ns = timer.tick_ns
        self.overhead_ns = timer.overhead_ns
        self.kernel_breakdown: Sequence[Mapping[str, float]] = ()
        self.pauses_ns: Sequence[float] = ()
        self.turns = 0
        """So many were handed over so far."""
        self.turn_s = 0.0
        """Wall-clock seconds that they took, the other side's samples included."""

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """As ``Timer.measure``; raises ``OtherSideLost`` too."""
        times: list[list[float]] = []
        for there, group in itertools.groupby(slots, lambda slot: slot.run is run_there):
            measure = self._there if there else self._timer.measure
            times += measure(list(group), cache)
        return times

    def _there(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        began = time.perf_counter()
        asked = Measure(slots=tuple((slot.samples, slot.dropped) for slot in slots), cache=cache)
        taken = asked_for(self._link, asked, Taken, self._patience_s)
        self.turns += 1
        self.turn_s += time.perf_counter() - began
        if [len(of_slot) for of_slot in taken.times] != [slot.samples for slot in slots]:
            raise OtherSideLost("the other process took other samples than it was asked for")
        return taken.times


def asked_for(link: Link, request: Record, kind: type[Kind], timeout_s: float) -> Kind:
    """The answer to a request.  Raises ``OtherSideLost``, also where the other side could not do what was asked."""
    link.send(request)
    answer = link.receive(Taken | Done | Failed, timeout_s)
    if isinstance(answer, Failed):
        raise OtherSideLost(f"the other side failed: {answer.why}")
    if not isinstance(answer, kind):
        raise OtherSideLost("the other process sent what was not asked for")
    return answer


# --- the other side --------------------------------------------------------------------------------


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


def serve_turns(
    link: Link, device: Device, timer: Timer, run: Callable[[], Any], reset: Callable[[], Any] | None, patience_s: float
) -> list[float]:
    """Take the turns that are asked for until the other process says to go on: all samples, nanoseconds.

    Raises ``OtherSideLost`` if it is gone, or silent for ``patience_s``.
    """
    placement, samples = MemoryPad(device), list[float]()
    while True:
        request = link.receive(Measure | TakePad | GoOn, patience_s)
        if isinstance(request, GoOn):
            return samples
        try:
            if isinstance(request, TakePad):
                placement.move(request.pad_bytes)
                link.send(Done())
                continue
            slots = [Slot(run, number, reset, dropped=dropped) for number, dropped in request.slots]
            times = timer.measure(slots, request.cache)
            device.synchronize()
        except OtherSideLost:
            raise
        except Exception as problem:  # noqa: BLE001 whatever it is, the process that asked is to know it
            link.send(Failed(why=f"{type(problem).__name__}: {problem}"))
            continue
        samples += [one for of_slot in times for one in of_slot]
        link.send(Taken(times=times))
