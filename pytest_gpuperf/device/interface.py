"""Interface between a GPU and the rest of the plugin.

``discovery.open_device`` returns the real one (CuPy, NVML, CUPTI).  A simulated one, handed in through the
``pytest_gpuperf_device`` hook, has to do no more than what is written here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_gpuperf.model.device_facts import DeviceFacts, DeviceState
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.model.limits import TimerName
from pytest_gpuperf.model.result import Dim3, TracedLaunch
from pytest_gpuperf.model.time_record import CacheMode

if TYPE_CHECKING:
    from pytest_gpuperf.compile.adapters.handed import TensorMap
    from pytest_gpuperf.device.driver_calls import CapturedKernel

TENSOR_MAP_BYTES = 128
COOPERATIVE, PDL = " cooperative", " pdl"


class LaunchAttributes(NamedTuple):
    """Further attributes of ``cuLaunchKernelEx``; none by default."""

    cooperative: bool = False
    """All blocks are resident at once, so that the grid may wait for itself."""
    cluster: Dim3 | None = None
    """Blocks of a cluster in x, y and z."""
    pdl: bool = False
    """A programmatic dependent launch: it may begin before the kernel in front of it ends."""

    @property
    def entry(self) -> str:
        """Their part of the identity's launch: empty if there are none."""
        cluster = "" if self.cluster is None else f" cluster={self.cluster}"
        return f"{COOPERATIVE if self.cooperative else ''}{cluster}{PDL if self.pdl else ''}"


PLAIN = LaunchAttributes()
"""A launch as any other."""


class Configuration(NamedTuple):
    """Launch configuration of a kernel, apart from its arguments."""

    grid: Dim3
    """Blocks in x, y and z."""
    block: Dim3
    """Threads in x, y and z."""
    dynamic_shared_bytes: int = 0
    """Per block."""
    attributes: LaunchAttributes = PLAIN


class LaunchLog:
    """The last launches of a test, and a number that grows with each and with each answer of the GPU."""

    def __init__(self) -> None:
        self.steps = 0
        self.last: deque[str] = deque(maxlen=4)
        """The newest first."""

    def launched(self, kernel: str, grid: Dim3, block: Dim3) -> None:
        """A launch is about to be enqueued."""
        self.steps += 1
        self.last.appendleft(f"{kernel}  grid {grid}  block {block}")


class LoadedKernel(Protocol):
    """A kernel in a module of its own in this process's context."""

    def __call__(self, launch: Configuration, args: Sequence[Any]) -> None:
        """Enqueue one launch on the current stream; does not wait.  Raises ``LoadError`` for refused attributes."""

    def write(self, symbol: str, content: bytes) -> None:
        """Copy to a variable of its module.  Waits for what was enqueued.  Raises ``LoadError``."""


class Slot(NamedTuple):
    """A run of equal samples: what to launch, how often."""

    run: Callable[[], Any]
    """Enqueues one sample's work on the current stream."""
    samples: int
    """Samples to return."""
    reset: Callable[[], None] | None = None
    """Restores in-place inputs before every sample; not timed."""
    dropped: int = 1
    """Samples before them that are not returned.  With none a timer launches nothing else, where it can."""


class SlotTimer(Protocol):
    """Device time of short pieces of work, on either side of a comparison."""

    tick_ns: float
    """Smallest step of the clock behind it, measured."""

    def measure(self, slots: Sequence[Slot], cache: CacheMode) -> list[list[float]]:
        """Run the slots in order and return, per slot, one time in nanoseconds per sample.

        With ``cache="cold"`` the L2 is flushed before every sample; with ``"warm"`` samples follow each
        other.  A timer that times several launches together returns the time of one.
        Raises ``TimerError`` if a sample was lost or has no valid time.
        """


class WorkloadTimer(SlotTimer, Protocol):
    """What a workload's rounds and records take as well."""

    name: TimerName

    @property
    def elapsed_ns(self) -> Sequence[Sequence[float]]:
        """From the first start to the last end of each sample, per slot of the last ``measure``; empty if not seen."""


class Timer(WorkloadTimer, Protocol):
    """That of this process's GPU."""

    overhead_ns: float
    """Reading of one sample of an empty kernel beyond the kernel's own time, measured.

    Graphs subtract it from what they return; CUPTI has none worth subtracting.
    """

    @property
    def kernel_breakdown(self) -> Sequence[Mapping[str, float]]:
        """Mean ns per sample of each kernel, by mangled name, per slot of the last ``measure``; empty if not seen."""

    def trace(self, slot: Slot) -> Sequence[TracedLaunch]:
        """The kernels of one untimed run, in the order of their launches; empty where this timer sees none.

        Raises ``TimerError``.
        """


class Device(Protocol):
    """One GPU, held by one process."""

    @property
    def facts(self) -> DeviceFacts: ...

    @property
    def arrays(self) -> Any:
        """Makes arrays by ``random``, ``empty``, ``zeros``, ``full``, ``empty_like`` and ``array``, as ``Gpu`` does.

        Every array has ``shape``, ``dtype``, ``strides``, ``nbytes`` and ``size``.
        """

    def load(self, binary: KernelBinary) -> LoadedKernel:
        """Load the cubin as a new module each time.  Raises ``LoadError`` (wrong architecture, bad cubin)."""

    def timer(self, name: TimerName | None = None) -> Timer:
        """The best timer that works here (CUPTI, graph), or the named one.  Raises ``TimerUnavailable``."""

    @property
    def stream_pointer(self) -> int:
        """The stream that workloads are measured on, a ``cudaStream_t``."""

    def current(self) -> AbstractContextManager[None]:
        """Inside, this GPU's stream is the current one of CuPy and of PyTorch, if that has been imported.

        Waits before and after for whatever was enqueued on any stream.
        """

    @property
    def launches(self) -> LaunchLog: ...

    def capture(self, call: Callable[[], Any]) -> CapturedKernel:
        """The kernel that ``call`` enqueues on this GPU's stream, and does not execute.  Raises ``LaunchError``."""

    def tensor_map(
        self, form: TensorMap, address: int | None, shape: Sequence[int], strides: Sequence[int], *, nan: bool
    ) -> bytes:
        """The ``CUtensorMap`` of an array, shape and strides in elements; ``nan`` is what lies outside of it, or 0.

        Raises ``LaunchError``.
        """

    def synchronize(self) -> None: ...

    def fault(self) -> str:
        """Why nothing runs on this GPU in this process any more, as CUDA names it; empty while it does.

        Waits for what was enqueued.
        """

    def is_idle(self) -> bool:
        """Whether all that was enqueued on the device's stream and on the default stream is done; does not wait."""

    def bytes_of(self, run: Callable[[], Any]) -> int:
        """The most bytes that one call of ``run`` held beyond what was held before it, arrays that it returns included.

        As CuPy's and PyTorch's allocators give them out, so exact; waits for what was enqueued.  Raises
        ``BadArgument`` where an allocator of the user's tells nobody.
        """

    def release_unused(self) -> None:
        """Give back memory that is kept for reuse, so that what ran before has no say in where arrays will lie."""

    def state(self) -> DeviceState: ...

    def lock(self) -> AbstractContextManager[Any]:
        """Exclusive use of this GPU (by UUID) among all processes of this machine; waits, with a bound."""

    def peak(self, name: str) -> float:
        """Measure a ceiling, under the lock: ``copy_bandwidth`` or one of ``model.roofs.ROOFS``.

        Per second; 0 where this GPU has no such part.
        """

    def to_host(self, array: Any) -> Any:
        """The array as NumPy."""

    def profiler_range(self, name: str) -> AbstractContextManager[None]:
        """A range of this name around what is launched inside, for profilers to see (NVTX push and pop)."""
