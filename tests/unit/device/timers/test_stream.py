"""The CuPy stream adapter against a stand-in for CuPy: capture leaves nothing behind, errors are for people."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable

import pytest

from pytest_gpuperf.device.timers import TimerError
from pytest_gpuperf.device.timers.stream import CudaStream


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


class Event:
    def __init__(self) -> None:
        self.recorded_on: object = None
        self.done = False

    def record(self, stream: object) -> None:
        self.recorded_on = stream


class Graph:
    graph = 1234

    def __init__(self) -> None:
        self.launched_on: list[object] = []

    def upload(self, stream: object) -> None: ...

    def launch(self, stream: object) -> None:
        self.launched_on.append(stream)


class Stream:
    def __init__(self) -> None:
        self.capturing = False
        self.invalidated = False
        self.last: Graph | None = None

    def begin_capture(self) -> None:
        self.capturing = True

    def end_capture(self) -> Graph:
        self.capturing = False
        if self.invalidated:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
        self.last = Graph()
        return self.last


class GpuDevice:
    """What ``CudaDevice`` offers to timers."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.calls: list[str] = []

    def flush_l2(self) -> None:
        self.calls.append("flush")

    def synchronize(self) -> None:
        self.calls.append("synchronize")


def stand_in(device: GpuDevice) -> types.ModuleType:
    cupy = types.ModuleType("cupy")

    class RawModule:
        def __init__(self, code: str) -> None:
            assert "gpuperf_spin" in code

        def get_function(self, name: str) -> Callable[..., None]:
            return lambda grid, block, args: device.calls.append(f"{name}{args}")

    runtime = types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError)
    cuda = types.SimpleNamespace(Event=Event, runtime=runtime, get_elapsed_time=lambda start, end: 0.0025)
    cupy.__dict__.update(RawModule=RawModule, cuda=cuda, int64=int)
    return cupy


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> GpuDevice:
    device = GpuDevice()
    monkeypatch.setitem(sys.modules, "cupy", stand_in(device))
    return device


@pytest.fixture
def stream(device: GpuDevice) -> CudaStream:
    return CudaStream(device)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> int:
    """The nodes that the driver finds in any graph."""
    from cuda.bindings import driver

    monkeypatch.setattr(driver, "cuGraphGetNodes", lambda graph, count: (0, None, 4))
    return 4


def test_launches_flush_and_wait_go_to_the_device(device: GpuDevice, stream: CudaStream) -> None:
    stream.empty()
    stream.spin(7)
    stream.flush_l2()
    stream.synchronize()
    assert device.calls == ["gpuperf_empty()", "gpuperf_spin(7,)", "flush", "synchronize"]


def test_marks_are_events_on_the_devices_stream_read_in_nanoseconds(device: GpuDevice, stream: CudaStream) -> None:
    first, second = stream.mark(), stream.mark()
    assert first.recorded_on is device.stream  # type: ignore[attr-defined]
    assert stream.elapsed_ns(first, second) == 2500.0
    assert stream.host_ns() < stream.host_ns()


def test_a_graph_is_replayed_on_the_same_stream(device: GpuDevice, stream: CudaStream, nodes: int) -> None:
    graph = stream.capture(lambda: None)
    assert graph.nodes == nodes
    graph.launch()
    assert device.stream.last is not None
    assert device.stream.last.launched_on == [device.stream]


def test_nothing_is_collected_during_a_capture(stream: CudaStream, nodes: int) -> None:
    seen = []
    stream.capture(lambda: seen.append(gc.isenabled()))
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.parametrize("invalidated", [False, True])
def test_work_that_cannot_be_captured_says_what_to_do_and_leaves_capture_mode(
    device: GpuDevice, stream: CudaStream, invalidated: bool
) -> None:
    def work() -> None:
        device.stream.invalidated = invalidated
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")

    with pytest.raises(TimerError, match=r"(?s)CaptureUnsupported.*pytest-gpuperf\[cupti\]"):
        stream.capture(work)
    assert not device.stream.capturing
    assert gc.isenabled()


def test_the_users_own_exception_passes_through_a_capture(device: GpuDevice, stream: CudaStream) -> None:
    def work() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        stream.capture(work)
    assert not device.stream.capturing
