"""Captures of a device's stream, by a stand-in for CuPy: nothing is left behind, errors are for people."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver

from pytest_gpuperf.device.timers import TimerError
from pytest_gpuperf.device.timers.stream import CudaStream


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


class Stream:
    """CuPy's, as far as it captures."""

    capturing = invalidated = False

    def begin_capture(self) -> None:
        self.capturing = True

    def end_capture(self) -> Any:
        self.capturing = False
        if self.invalidated:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
        return SimpleNamespace(graph=1234, upload=lambda stream: None)


@pytest.mark.parametrize("raised", [None, CUDARuntimeError("cudaErrorStreamCaptureUnsupported"), KeyError("mine")])
@pytest.mark.parametrize("invalidated", [False, True])
def test_failed_capture(monkeypatch: pytest.MonkeyPatch, raised: Exception | None, invalidated: bool) -> None:
    """Nothing is collected meanwhile, and the user's own exception passes through."""
    runtime = SimpleNamespace(CUDARuntimeError=CUDARuntimeError)
    module = SimpleNamespace(get_function=lambda name: None)
    cupy = SimpleNamespace(RawModule=lambda code: module, cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(driver, "cuGraphGetNodes", lambda graph, count: (0, None, 4))
    cupys = Stream()
    stream = CudaStream(SimpleNamespace(stream=cupys, flush_l2=lambda: None, synchronize=lambda: None))

    def work() -> None:
        assert not gc.isenabled()
        cupys.invalidated = invalidated
        if raised is not None:
            raise raised

    if isinstance(raised, KeyError):
        with pytest.raises(KeyError, match="mine"):
            stream.capture(work)
    elif raised is not None or invalidated:
        with pytest.raises(TimerError, match=r"(?s)Capture(Unsupported|Invalidated).*pytest-gpuperf\[cupti\]"):
            stream.capture(work)
    else:
        assert stream.capture(work, 3).nodes == 4
    assert not cupys.capturing
    assert gc.isenabled()
