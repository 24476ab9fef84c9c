"""The CUDA device on stand-ins: what it asks of CuPy, and what it refuses to load."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_samples import FakeCupy, FakeError, FakeNvml, MemoryHook, PoolMemory
from dsl_samples import cubin

from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.machine_code.binary import ready_made
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.device import cuda
from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.device_errors import LoadError, UnseenMemory
from pytest_gpuperf.device.discovery import Nvml, read_facts
from pytest_gpuperf.device.interface import Configuration, LaunchAttributes
from pytest_gpuperf.model.evidence import KernelBinary


@pytest.fixture(scope="module")
def binary() -> KernelBinary:
    return compile_kernel(KernelSource(text='extern "C" __global__ void work(int n) {}', name="work"), "sm_90")


@pytest.fixture
def cupy() -> FakeCupy:
    return FakeCupy()


class Driver:
    """``cuda.bindings.driver`` as far as it knows of persisting lines."""

    CUlimit = SimpleNamespace(CU_LIMIT_PERSISTING_L2_CACHE_SIZE="set aside")

    def __init__(self, log: list[Any]) -> None:
        self._log = log
        self.answer = (0, 0)

    def cuCtxGetLimit(self, limit: str) -> tuple[int, int]:
        assert limit == "set aside"
        return self.answer

    def cuCtxResetPersistingL2Cache(self) -> None:
        self._log.append("reset persisting")


@pytest.fixture
def device(cupy: FakeCupy) -> CudaDevice:
    nvml = Nvml(FakeNvml(), "11")
    made = CudaDevice(cupy, 0, read_facts(cupy, 0, nvml), nvml, Driver(cupy.log))
    del cupy.log[:]
    return made


@pytest.fixture
def torch(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """PyTorch, as far as it has streams and threads."""

    @contextlib.contextmanager
    def noted(said: object) -> Iterator[None]:
        cupy.log.append(("torch", said))
        yield
        cupy.log.append("torch off")

    cuda = SimpleNamespace(is_initialized=lambda: True, ExternalStream=lambda pointer: pointer, stream=noted)
    module = SimpleNamespace(cuda=cuda, autograd=SimpleNamespace(set_multithreading_enabled=noted))
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_cupy_and_pytorch_launch_on_its_stream_and_nothing_runs_beside(
    device: CudaDevice, cupy: FakeCupy, torch: SimpleNamespace
) -> None:
    with device.current():
        cupy.log.append("work")
    assert cupy.log == [
        "synchronize", "entered", ("torch", device.stream_pointer), "work", "torch off", "left", "used",
        "synchronize",
    ]  # fmt: skip


def test_afterwards_the_stream_is_current_that_was(device: CudaDevice, cupy: FakeCupy) -> None:
    """CuPy's own end of a ``with`` would go back to the legacy default stream, which cannot be captured."""
    with device.current():
        pass
    assert cupy.current is device.stream
    mine = cupy.cuda.Stream()
    mine.use()
    with contextlib.suppress(KeyError), device.current():
        assert cupy.current is device.stream
        raise KeyError
    assert cupy.current is mine


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        ((0, 0), []),  # nothing set aside, as by default
        ((0, 1 << 20), ["waited", "reset persisting"]),
        ((1, 1 << 20), []),  # the driver does not tell
    ],
)
def test_lines_that_persist_are_ordinary_before_the_flush(
    device: CudaDevice, cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, int], first: list[str]
) -> None:
    device.driver.answer = answer
    monkeypatch.setattr(device.stream, "synchronize", lambda: cupy.log.append("waited"), raising=False)
    device.flush_l2()
    size = 2 * (60 << 20)
    assert cupy.log == [*first, ("alloc", size), ("memset", 0, size, device.stream)]


STICKY = "cudaErrorIllegalAddress: an illegal memory access was encountered"


@pytest.mark.parametrize(("raised", "fault"), [([], ""), (["cleared by it"], ""), ([STICKY] * 2, STICKY)])
def test_a_fault_is_an_error_that_waiting_again_does_not_clear(
    device: CudaDevice, cupy: FakeCupy, raised: list[str], fault: str
) -> None:
    cupy.faults = list(raised)
    assert device.fault() == fault
    assert not cupy.faults


GOES_ON, ILLEGAL_ADDRESS = 600, 700
"""``cudaErrorNotReady`` and ``cudaErrorIllegalAddress``, which CuPy's query of a stream returns as they are."""


@pytest.mark.parametrize(
    ("own", "default", "idle"),
    [(0, 0, True), (GOES_ON, 0, False), (0, GOES_ON, False), (ILLEGAL_ADDRESS, ILLEGAL_ADDRESS, True)],
)
def test_the_gpu_is_idle_when_both_streams_are_or_a_fault_has_ended_all(
    device: CudaDevice, cupy: FakeCupy, own: int, default: int, idle: bool
) -> None:
    cupy.unfinished = {device.stream_pointer: own, 0: default}
    assert device.is_idle() is idle


@pytest.mark.parametrize("imported", [True, False])
def test_in_a_profiled_range_pytorch_launches_its_backward_pass_from_this_thread(
    device: CudaDevice, cupy: FakeCupy, torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, imported: bool
) -> None:
    """NVTX's ranges are of a thread: ncu would not see it, and count the rest."""
    ranges = SimpleNamespace(time_range=lambda name: contextlib.nullcontext(cupy.log.append(name)))
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupyx.profiler", ranges)
    if not imported:
        monkeypatch.delitem(sys.modules, "torch")
    with device.profiler_range("gpuperf:0"):
        cupy.log.append("work")
    assert cupy.log == ["gpuperf:0", *([("torch", False), "work", "torch off"] if imported else ["work"])]


# --- memory --------------------------------------------------------------------------------------


def test_the_most_that_is_held_at_once_counts_and_not_the_sum(device: CudaDevice, cupy: FakeCupy) -> None:
    def run() -> None:
        for size in (1024, 1536):  # one after the other
            cupy.cuda.alloc(size)
        held = cupy.cuda.alloc(1536), cupy.cuda.alloc(1)
        del held

    assert device.bytes_of(run) == 1536 + 512
    with pytest.raises(ZeroDivisionError):
        device.bytes_of(lambda: 1 / 0)
    assert MemoryHook.active == []


def test_an_allocator_that_tells_nobody_is_refused(device: CudaDevice, cupy: FakeCupy) -> None:
    """Such as RMM's, or CuPy's own MemoryAsyncPool: what a run takes of it would count as nothing."""
    cupy.cuda.alloc = lambda size: object()
    with pytest.raises(UnseenMemory, match=r"cupy.cuda.set_allocator\(...\) has put another allocator in its place"):
        device.bytes_of(lambda: PoolMemory(512))


@pytest.mark.parametrize("cupys_own", [True, False])
def test_memory_of_pytorch_is_added_and_given_back(
    device: CudaDevice, cupy: FakeCupy, torch: SimpleNamespace, cupys_own: bool
) -> None:
    """Also where CuPy itself is on the allocator of PyTorch, and its own pool gives out nothing."""
    held = SimpleNamespace(now=5000, most=70_000)
    torch.cuda.memory_allocated, torch.cuda.max_memory_allocated = (lambda: held.now), (lambda: held.most)
    torch.cuda.reset_peak_memory_stats = lambda: setattr(held, "most", held.now)
    torch.cuda.empty_cache = lambda: cupy.log.append("torch emptied")
    if not cupys_own:
        cupy.cuda.alloc = lambda size: setattr(held, "most", held.most + size)

    def run() -> None:
        cupy.cuda.alloc(512)
        held.most += 4000

    assert device.bytes_of(run) == 512 + 4000
    device.release_unused()
    assert cupy.log[-2:] == ["emptied", "torch emptied"]


# --- kernels -------------------------------------------------------------------------------------


def test_shared_memory_is_asked_for_when_needed_and_variables_are_written(
    device: CudaDevice, cupy: FakeCupy, binary: KernelBinary
) -> None:
    kernel = device.load(binary)
    for shared in (0, 49152, 100_000, 60_000, 200_000):
        kernel(Configuration((2, 1, 1), (32, 1, 1), shared), [np.int32(1)])
    kernel.write("weights", b"\0\1\2\0")
    opted = [entry[1] for entry in cupy.log if entry[0] == "max_dynamic_shared_size_bytes"]
    launched = [entry for entry in cupy.log if entry[0] == "launch"]
    assert (opted, len(launched)) == ([100_000, 200_000], 5)
    assert launched[1] == ("launch", "work", (2, 1, 1), (32, 1, 1), (np.int32(1),), 49152)
    assert cupy.log[-1] == ("write", "weights", b"\0\1\2\0")
    with pytest.raises(LoadError, match=r"no access to hidden: CUDA_ERROR_NOT_FOUND.*without static"):
        kernel.write("hidden", b"\0")
    cupy.load_error = FakeError("CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(LoadError, match=r"work \(sm_90\): the driver refuses its cubin: CUDA_ERROR_OUT_OF_MEMORY"):
        device.load(binary)


def test_attributes_go_to_the_driver_and_tile_kernels_in_blocks_of_one_thread(
    device: CudaDevice, cupy: FakeCupy, binary: KernelBinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(cuda, "launch_extended", lambda _, *given: told.append(given))
    content = cubin("cutile-scale-1.7.0-sm_90")
    (symbol,) = read_cubin(content).kernels
    plain = Configuration((4, 1, 1), (128, 1, 1), 100_000)
    clustered = plain._replace(attributes=LaunchAttributes(True, (2, 1, 1)))
    for one in (binary, ready_made(content, symbol, place="here")):
        kernel = device.load(one)
        kernel(plain, ())
        kernel(clustered, (np.int32(1),))
    blocks = [entry[3] for entry in cupy.log if entry[0] == "launch"]
    assert blocks == [(128, 1, 1), (1, 1, 1)]
    given = 99, device.stream_pointer
    arguments = (np.int32(1),)
    assert told == [(*given, clustered, arguments), (*given, clustered._replace(block=(1, 1, 1)), arguments)]
