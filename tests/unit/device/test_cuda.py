"""The CUDA device on stand-ins: the streams of CuPy and PyTorch, faults, and what is flushed and given back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from device_samples import FakeCupy
from nvml_samples import FakeNvml

from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.discovery import Nvml, read_facts


@pytest.fixture
def cupy() -> FakeCupy:
    return FakeCupy()


@pytest.fixture
def device(cupy: FakeCupy) -> CudaDevice:
    nvml = Nvml(FakeNvml("GPU-11"), "11")
    driver = SimpleNamespace(
        CUlimit=SimpleNamespace(CU_LIMIT_PERSISTING_L2_CACHE_SIZE="set aside"),
        cuCtxResetPersistingL2Cache=lambda: cupy.log.append("reset persisting"),
    )
    made = CudaDevice(cupy, 0, read_facts(cupy, 0, nvml), nvml, driver)
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


def test_cupy_and_pytorch_launch_on_its_stream(device: CudaDevice, cupy: FakeCupy, torch: SimpleNamespace) -> None:
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


@pytest.mark.parametrize(("answer", "first"), [
    ((0, 0), []),  # nothing set aside, as by default
    ((0, 1 << 20), ["waited", "reset persisting"]),
    ((1, 1 << 20), []),  # the driver does not tell
])  # fmt: skip
def test_lines_that_persist_are_ordinary_before_the_flush(
    device: CudaDevice, cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, int], first: list[str]
) -> None:
    device.driver.cuCtxGetLimit = {"set aside": answer}.get
    monkeypatch.setattr(device.stream, "synchronize", lambda: cupy.log.append("waited"), raising=False)
    device.flush_l2()
    size = 2 * (60 << 20)
    assert cupy.log == [*first, ("alloc", size), ("memset", 0, size, device.stream)]


STICKY = "cudaErrorIllegalAddress: an illegal memory access was encountered"


@pytest.mark.parametrize(("raised", "fault"), [([], ""), (["cleared by it"], ""), ([STICKY] * 2, STICKY)])
def test_fault_is_an_error_that_stays(device: CudaDevice, cupy: FakeCupy, raised: list[str], fault: str) -> None:
    cupy.faults = list(raised)
    assert device.fault() == fault
    assert not cupy.faults


@pytest.mark.parametrize(("own", "default", "idle"), [(0, 0, True), (600, 0, False), (0, 600, False), (700, 700, True)])
def test_gpu_is_idle_when_streams_are(device: CudaDevice, cupy: FakeCupy, own: int, default: int, idle: bool) -> None:
    """CuPy's query returns ``cudaErrorNotReady``, 600, or a fault, as ``cudaErrorIllegalAddress``, 700."""
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


def test_memory_that_pytorch_keeps_is_given_back(device: CudaDevice, cupy: FakeCupy, torch: SimpleNamespace) -> None:
    """Else a second process lacks that memory, and arrays lie where the tests before left room."""
    torch.cuda.empty_cache = lambda: cupy.log.append("torch emptied")
    device.release_unused()
    assert cupy.log == ["emptied", "torch emptied"]
