"""The one stream that timers work on, and the few things they do with it: all that a timer knows of the GPU."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.timers.timer_errors import TimerError

_KERNELS = """
extern "C" __global__ void gpuperf_empty() {}
extern "C" __global__ void gpuperf_spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""

_TAKE_OUT = (
    "it probably waits for the GPU, copies to the host, allocates, or launches on the default stream instead of "
    "gpu.stream. Take that out of the measured function, or install the CUPTI timer "
    "(pip install 'pytest-gpuperf[cupti]'), which needs no capture"
)


class CudaStream:
    """A device's CuPy stream, which has to be the current one."""

    def __init__(self, device: Any) -> None:
        import cupy  # noqa: PLC0415 there is none without a GPU

        self._cupy = cupy
        self._device = device
        self._stream = device.stream
        module = cupy.RawModule(code=_KERNELS)
        self._empty = module.get_function("gpuperf_empty")
        self._spin = module.get_function("gpuperf_spin")

    def empty(self) -> None:
        """Enqueue a kernel that does nothing."""
        self._empty((1,), (1,), ())

    def spin(self, cycles: int) -> None:
        """Enqueue a kernel of one thread that is busy for so many SM clock cycles, then ends by itself."""
        self._spin((1,), (1,), (self._cupy.int64(cycles),))

    def flush_l2(self) -> None:
        """Enqueue a memset that evicts the L2.

        Lines that the workload made persist outlast a flush: they are made ordinary ones first, which waits.
        """
        if self._device.has_persisting_lines:
            self._device.end_persistence()
        self._device.flush_l2()

    def mark(self) -> Any:
        """Enqueue an event, whose time the GPU notes: ``done`` once it is there, ``synchronize()`` waits for it."""
        event = self._cupy.cuda.Event()
        event.record(self._stream)
        return event

    def capture(self, work: Callable[[], Any]) -> Graph:
        """The graph of what ``work`` enqueues, which is not run.  Raises ``TimerError`` if it cannot be captured.

        Garbage collection waits meanwhile, for unloading a module would void the capture.
        """
        collecting = gc.isenabled()
        gc.disable()
        try:
            return Graph(self._captured(work), self._stream)
        except RuntimeError as error:  # CUDA errors of CuPy and PyTorch are RuntimeErrors
            raise TimerError(f"the workload cannot be captured in a CUDA graph ({error})", _TAKE_OUT) from error
        finally:
            if collecting:
                gc.enable()

    def _captured(self, work: Callable[[], Any]) -> Any:
        self._stream.begin_capture()
        try:
            work()
        except BaseException:
            # Leave capture mode, or every later call on the stream fails.
            with contextlib.suppress(self._cupy.cuda.runtime.CUDARuntimeError):
                self._stream.end_capture()
            raise
        return self._stream.end_capture()

    def host_ns(self) -> float:
        """The host's clock."""
        return time.perf_counter_ns()

    def elapsed_ns(self, start: Any, end: Any) -> float:
        """GPU time between two marks that are done."""
        return float(self._cupy.cuda.get_elapsed_time(start, end)) * 1e6

    def synchronize(self) -> None:
        """Wait until the GPU is idle, on all streams."""
        self._device.synchronize()


class Graph:
    """A captured CUDA graph, ready to be replayed; ``nodes`` counts its kernels, copies and the like."""

    def __init__(self, graph: Any, stream: Any) -> None:
        self._graph = graph
        self._stream = stream
        self.nodes = _nodes(graph.graph)
        graph.upload(stream)

    def launch(self) -> None:
        """Enqueue a replay."""
        self._graph.launch(self._stream)


def _nodes(handle: int) -> int:
    try:
        from cuda.bindings import driver  # noqa: PLC0415 an extra
    except ImportError as error:
        reason = f"the nodes of a graph are counted by the driver's binding, which cannot be imported ({error})"
        raise TimerError(reason, "pip install cuda-bindings") from error
    status, _, count = driver.cuGraphGetNodes(driver.CUgraph(handle), 0)
    if int(status) != 0:
        raise TimerError(f"the CUDA driver cannot count the nodes of a captured graph: {status}")
    return int(count)
