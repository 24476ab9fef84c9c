"""The stream of a device, by a stand-in for CuPy: capture leaves nothing behind, errors are for people."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.device.timers import TimerError
from pytest_gpuperf.device.timers.stream import CudaStream


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


class Stream:
    """CuPy's, which notes what it is asked for."""

    def __init__(self) -> None:
        self.capturing = self.invalidated = False
        self.said: list[Any] = []

    def begin_capture(self) -> None:
        self.capturing = True

    def end_capture(self) -> Any:
        self.capturing = False
        if self.invalidated:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
        return SimpleNamespace(graph=1234, upload=lambda stream: None, launch=self.said.append)


@pytest.fixture
def cupy_stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    """That of the device; each graph has four nodes."""
    from cuda.bindings import driver

    stream = Stream()
    event = SimpleNamespace(record=lambda on: stream.said.append(("event", on)))
    functions = SimpleNamespace(get_function=lambda name: lambda *_: stream.said.append(name))
    cuda = SimpleNamespace(
        Event=lambda: event, runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError),
        get_elapsed_time=lambda start, end: 0.0025,
    )  # fmt: skip
    cupy = SimpleNamespace(RawModule=lambda code: functions, cuda=cuda, int64=int)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(driver, "cuGraphGetNodes", lambda graph, count: (0, None, 4))
    return stream


@pytest.fixture
def stream(cupy_stream: Stream) -> CudaStream:
    return CudaStream(SimpleNamespace(stream=cupy_stream, flush_l2=lambda: None, synchronize=lambda: None))


def test_kernels_marks_and_replays_go_to_the_devices_stream(stream: CudaStream, cupy_stream: Stream) -> None:
    stream.empty()
    stream.spin(7)
    assert stream.elapsed_ns(stream.mark(), stream.mark()) == 2500.0
    graph = stream.capture(lambda: None)
    graph.launch()
    events = [("event", cupy_stream)] * 2
    assert (graph.nodes, cupy_stream.said) == (4, ["gpuperf_empty", "gpuperf_spin", *events, cupy_stream])


@pytest.mark.parametrize("raised", [None, CUDARuntimeError("cudaErrorStreamCaptureUnsupported"), KeyError("mine")])
@pytest.mark.parametrize("invalidated", [False, True])
def test_work_that_cannot_be_captured_says_what_to_do_and_leaves_capture_mode(
    stream: CudaStream, cupy_stream: Stream, raised: Exception | None, invalidated: bool
) -> None:
    """Nothing is collected meanwhile, and the user's own exception passes through."""

    def work() -> None:
        assert not gc.isenabled()
        cupy_stream.invalidated = invalidated
        if raised is not None:
            raise raised

    if isinstance(raised, KeyError):
        with pytest.raises(KeyError, match="mine"):
            stream.capture(work)
    elif raised is not None or invalidated:
        with pytest.raises(TimerError, match=r"(?s)Capture(Unsupported|Invalidated).*pytest-gpuperf\[cupti\]"):
            stream.capture(work)
    else:
        stream.capture(work, 3)
    assert not cupy_stream.capturing
    assert gc.isenabled()
