"""The one stream that timers work on, and the few things they do with it.

``WorkStream`` is all that a timer knows of the GPU; ``CudaStream`` is it in CuPy.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from typing import Any, Protocol

from pytest_gpuperf.device.timers.timer_errors import TimerError

_KERNELS = """
extern "C" __global__ void gpuperf_empty() {}
extern "C" __global__ void gpuperf_spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""

_NOT_CAPTURABLE = (
    "the workload cannot be captured in a CUDA graph: {error}. It probably waits for the GPU, copies to the host, "
    "allocates, or launches on the default stream instead of gpu.stream. Take that out of the measured function, or "
    "install the CUPTI timer (pip install 'pytest-gpuperf[cupti]'), which needs no capture"
)


class Mark(Protocol):
    """A point on the stream whose time the GPU notes when it gets there."""

    @property
    def done(self) -> bool:
        """True once the GPU has got there."""


class CapturedGraph(Protocol):
    """Work captured from the stream, ready to be replayed."""

    nodes: int
    """Kernels, copies, memsets and child graphs in it."""

    def launch(self) -> None:
        """Enqueue a replay."""


class WorkStream(Protocol):
    """A stream of GPU work, in order; every method but the last six enqueues and returns at once."""

    def empty(self) -> None:
        """A kernel that does nothing."""

    def spin(self, cycles: int) -> None:
        """A kernel of one thread that is busy for so many SM clock cycles, then ends by itself."""

    def flush_l2(self) -> None: ...

    def mark(self) -> Mark: ...

    def capture(self, work: Callable[[], None]) -> CapturedGraph:
        """The graph of what ``work`` enqueues, which is not run.  Raises ``TimerError`` if it cannot be captured."""

    def host_ns(self) -> float:
        """The host's clock."""

    def elapsed_ns(self, start: Mark, end: Mark) -> float:
        """GPU time between two marks that are done."""

    @property
    def has_persisting_lines(self) -> bool:
        """Whether there may be lines of the L2 that outlast a flush."""

    def end_persistence(self) -> None:
        """Wait, so not behind a delay, and make such lines ordinary ones."""

    def wait_for(self, mark: Mark) -> None:
        """Wait until the GPU has got there."""

    def synchronize(self) -> None:
        """Wait until the GPU is idle."""


class CudaStream:
    """``WorkStream`` on a device's CuPy stream, which has to be the current one."""

    def __init__(self, device: Any) -> None:
        import cupy  # noqa: PLC0415 there is none without a GPU

        self._cupy = cupy
        self._device = device
        self._stream = device.stream
        module = cupy.RawModule(code=_KERNELS)
        self._empty = module.get_function("gpuperf_empty")
        self._spin = module.get_function("gpuperf_spin")

    def empty(self) -> None:
        self._empty((1,), (1,), ())

    def spin(self, cycles: int) -> None:
        self._spin((1,), (1,), (self._cupy.int64(cycles),))

    def flush_l2(self) -> None:
        self._device.flush_l2()

    @property
    def has_persisting_lines(self) -> bool:
        return bool(self._device.has_persisting_lines)

    def end_persistence(self) -> None:
        self._device.end_persistence()

    def mark(self) -> Mark:
        event = self._cupy.cuda.Event()
        event.record(self._stream)
        return event  # type: ignore[no-any-return]

    def capture(self, work: Callable[[], None]) -> CapturedGraph:
        """As declared; garbage collection waits meanwhile, for unloading a module would void the capture."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            return _Graph(self._captured(work), self._stream)
        except RuntimeError as error:  # CUDA errors of CuPy and PyTorch are RuntimeErrors
            raise TimerError(_NOT_CAPTURABLE.format(error=error)) from error
        finally:
            if collecting:
                gc.enable()

    def _captured(self, work: Callable[[], None]) -> Any:
        self._stream.begin_capture()
        try:
            work()
        except BaseException:
            # Leave capture mode, or every later call on the stream fails. The error in flight is the one that
            # matters; what it did to the capture is its consequence.
            with contextlib.suppress(self._cupy.cuda.runtime.CUDARuntimeError):
                self._stream.end_capture()
            raise
        return self._stream.end_capture()

    def host_ns(self) -> float:
        return time.perf_counter_ns()

    def elapsed_ns(self, start: Mark, end: Mark) -> float:
        return float(self._cupy.cuda.get_elapsed_time(start, end)) * 1e6

    def wait_for(self, mark: Any) -> None:
        mark.synchronize()

    def synchronize(self) -> None:
        self._device.synchronize()


class _Graph:
    """A captured CUDA graph, and how many of its nodes do something."""

    def __init__(self, graph: Any, stream: Any) -> None:
        self._graph = graph
        self._stream = stream
        self.nodes = _working_nodes(graph.graph)
        graph.upload(stream)

    def launch(self) -> None:
        self._graph.launch(self._stream)


def _working_nodes(handle: int) -> int:
    try:
        from cuda.bindings import driver  # noqa: PLC0415 an extra
    except ImportError as error:
        raise TimerError(
            f"what a graph holds is asked of the driver's binding, which cannot be imported ({error}): "
            "pip install cuda-bindings"
        ) from error
    names = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH")
    working = {getattr(driver.CUgraphNodeType, f"CU_GRAPH_NODE_TYPE_{name}") for name in names}
    graph = driver.CUgraph(handle)
    _, _, count = _checked(driver.cuGraphGetNodes(graph, 0))
    _, nodes, _ = _checked(driver.cuGraphGetNodes(graph, count))
    return sum(_checked(driver.cuGraphNodeGetType(node))[1] in working for node in nodes or ())


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(answer[0]) != 0:
        raise TimerError(f"the CUDA driver cannot tell the nodes of a captured graph: {answer[0]}")
    return answer
