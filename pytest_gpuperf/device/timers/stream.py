"""The one stream that timers work on, and the few things they do with it: all that a timer knows of the GPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.device.device_errors import TimerError
from pytest_gpuperf.garbage import no_collection

_KERNELS = """
extern "C" __global__ void gpuperf_empty() {}
extern "C" __global__ void gpuperf_spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""

Work = Callable[[], Any]
"""Enqueues on the current stream."""


class CudaStream:
    """A device's CuPy stream, which has to be the current one."""

    def __init__(self, device: Any) -> None:
        import cupy  # noqa: PLC0415 there is none without a GPU

        self._cupy = cupy
        self._stream = device.stream
        self.flush_l2: Work = device.flush_l2
        """Enqueues a write that evicts the L2."""
        self.synchronize: Work = device.synchronize
        """Waits until the GPU is idle, on all streams."""
        module = cupy.RawModule(code=_KERNELS)
        self._empty, self._spin = map(module.get_function, ("gpuperf_empty", "gpuperf_spin"))

    def empty(self) -> None:
        """Enqueue a kernel that does nothing."""
        self._empty((1,), (1,), ())

    def spin(self, cycles: int) -> None:
        """Enqueue a kernel of one thread that is busy for so many SM clock cycles, then ends by itself."""
        self._spin((1,), (1,), (self._cupy.int64(cycles),))

    def mark(self) -> Any:
        """Enqueue an event, whose time the GPU notes: ``done`` once it is there, ``synchronize()`` waits for it."""
        event = self._cupy.cuda.Event()
        event.record(self._stream)
        return event

    def elapsed_ns(self, start: Any, end: Any) -> float:
        """GPU time between two marks that are done."""
        return float(self._cupy.cuda.get_elapsed_time(start, end)) * 1e6

    def host_ns(self) -> float:
        """The host's clock."""
        return time.perf_counter_ns()

    def capture(self, work: Work, times: int = 1) -> Graph:
        """The graph of what ``work`` enqueues so many times, which is not run.

        Garbage collection waits meanwhile, for unloading a module would void the capture.  Raises ``TimerError`` if it
        cannot be captured.
        """
        try:
            with no_collection():
                self._stream.begin_capture()
                try:
                    for _ in range(times):
                        work()
                except BaseException:  # left in capture, the stream would refuse every later call
                    with contextlib.suppress(self._cupy.cuda.runtime.CUDARuntimeError):
                        self._stream.end_capture()
                    raise
                return Graph(self._stream.end_capture(), self._stream)
        except RuntimeError as error:  # CUDA errors of CuPy and PyTorch are RuntimeErrors
            raise TimerError(
                f"the workload cannot be captured in a CUDA graph ({error}); it probably waits for the GPU, copies to "
                "the host, allocates, or launches on the default stream instead of gpu.stream. Take that out of the "
                "measured function, or install the CUPTI timer (pip install 'pytest-gpuperf[cupti]'), which needs no "
                "capture"
            ) from error


class Graph:
    """A captured CUDA graph, ready to be replayed; ``nodes`` counts its kernels, copies and the like."""

    def __init__(self, graph: Any, stream: Any) -> None:
        from cuda.bindings import driver  # noqa: PLC0415 an extra

        self._graph, self._stream = graph, stream
        _, _, count = driver.cuGraphGetNodes(driver.CUgraph(graph.graph), 0)
        self.nodes = int(count)
        graph.upload(stream)

    def launch(self) -> None:
        """Enqueue a replay."""
        self._graph.launch(self._stream)
