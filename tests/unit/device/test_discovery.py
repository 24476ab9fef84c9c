"""Finding the GPU: every way in which there may be none has its reason and its remedy."""

from __future__ import annotations

import types
from typing import Any

import pytest
from device_samples import PROPERTIES, FakeCupy, FakeError, FakeNvml

from pytest_gpuperf.device import discovery
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.discovery import VARIABLE, is_missing_device, open_device

RAW_UUID = bytes.fromhex("8a56a4bc00112233445566778899aabb")
UUID = "GPU-8a56a4bc-0011-2233-4455-66778899aabb"


class FakeDriver(types.SimpleNamespace):
    """``cuda.bindings.driver``."""

    def __init__(self, failure: int = 0) -> None:
        super().__init__(failure=failure)

    def cuDeviceGetUuid_v2(self, device: int) -> tuple[int, Any]:
        return self.failure, types.SimpleNamespace(bytes=RAW_UUID)


class Machine:
    """What ``open_device`` finds when it looks around."""

    def __init__(self, cupy: Any = None, nvml: Any = None, driver: Any = None, environ: Any = None) -> None:
        self.modules = {"cupy": cupy or FakeCupy(), "pynvml": nvml or FakeNvml(UUID),
                        "cuda.bindings.driver": driver or FakeDriver()}  # fmt: skip
        self.environ = {} if environ is None else environ
        self.library: Any = None
        self.visible_at_start: list[str | None] = []

    def load_module(self, name: str) -> Any:
        module = self.modules[name]
        if isinstance(module, Exception):
            raise module
        return module

    def load_library(self, name: str) -> Any:
        if self.library is not None:
            raise self.library
        return types.SimpleNamespace(cuInit=lambda flags: self.visible_at_start.append(self.environ.get(VARIABLE)))

    def open(self, worker: int | None = None) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(discovery.os, "environ", self.environ)
            patch.setattr(discovery.importlib, "import_module", self.load_module)
            patch.setattr(discovery.ctypes, "CDLL", self.load_library)
            return open_device(worker)

    def refusal(self) -> str:
        with pytest.raises(NoDevice) as caught:
            self.open()
        return str(caught.value)


def test_the_gpu_is_opened_with_its_facts() -> None:
    device = Machine().open()
    facts = device.facts
    assert (facts.name, facts.slug, facts.arch, facts.uuid) == ("NVIDIA H200", "nvidia-h200", "sm_90", UUID)
    assert (facts.sm_count, facts.l2_bytes, facts.shared_bytes_per_block_optin) == (132, 60 << 20, 227 << 10)
    assert facts.driver == "580.95.05"
    assert facts.max_grid == (2**31 - 1, 65535, 65535)
    assert facts.index == 0


@pytest.mark.parametrize("value", ["", "-1", "nothing"])
def test_a_variable_that_hides_every_gpu_is_named_before_anything_is_loaded(value: str) -> None:
    machine = Machine(cupy=AssertionError("loaded"), environ={VARIABLE: value})
    problem = machine.refusal()
    assert f"CUDA_VISIBLE_DEVICES={value!r}" in problem
    assert "unset" in problem


def test_no_driver() -> None:
    machine = Machine(cupy=AssertionError("loaded"))
    machine.library = OSError("libcuda.so.1: cannot open shared object file")
    problem = machine.refusal()
    assert "no NVIDIA driver (libcuda.so.1" in problem
    assert "--gpus all" in problem


@pytest.mark.parametrize("missing", ["cupy", "driver"])
def test_no_cupy_or_no_binding_of_the_driver(missing: str) -> None:
    problem = Machine(**{missing: ImportError("No module named 'it'")}).refusal()
    assert problem.startswith("CuPy or cuda-bindings cannot be imported (No module named 'it'); ")
    assert "pip install 'pytest-gpuperf[cuda13]'" in problem


def test_a_driver_too_old_for_cupys_cuda() -> None:
    problem = Machine(cupy=FakeCupy(FakeError("cudaErrorInsufficientDriver: too old"))).refusal()
    assert "supports CUDA 12.4, and CuPy needs CUDA 13.2" in problem
    assert "[cuda12]" in problem


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (FakeError("cudaErrorNoDevice: no CUDA-capable device is detected"), "CUDA does not start (cudaErrorNoDevice"),
        (FakeError("cudaErrorSystemNotReady"), "CUDA does not start (cudaErrorSystemNotReady)"),
    ],
)
def test_a_driver_without_a_gpu_or_that_does_not_start(count: Any, words: str) -> None:
    assert words in Machine(cupy=FakeCupy(count)).refusal()


def test_a_gpu_that_nothing_can_be_compiled_for() -> None:
    problem = Machine(cupy=FakeCupy(properties={**PROPERTIES, "major": 7, "minor": 0})).refusal()
    assert "NVIDIA H200 cannot be used" in problem
    assert "sm_70" in problem


def test_a_worker_is_bound_before_cuda_is_asked() -> None:
    class Watching(FakeCupy):
        def _device_count(self) -> int:
            self.log.append(machine.environ[VARIABLE])
            return 1

    cupy = Watching()
    machine = Machine(cupy=cupy, environ={VARIABLE: "GPU-a,GPU-b"})
    device = machine.open(worker=3)
    assert cupy.log[0] == "GPU-b"
    assert machine.visible_at_start == ["GPU-b"], "the driver reads it when it starts"
    assert ("device", 0) in cupy.log
    assert device.facts.index == 1


def test_a_slice_of_a_gpu_is_known_as_such() -> None:
    facts = Machine(nvml=FakeNvml(UUID.replace("GPU-", "MIG-"))).open().facts
    assert facts.uuid.startswith("MIG-8a56a4bc")


@pytest.mark.parametrize(
    "problem",
    [
        RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"),
        RuntimeError("Found no NVIDIA driver on your system."),
        AssertionError("Torch not compiled with CUDA enabled"),
        RuntimeError("0 active drivers ([]). There should only be one."),
        ImportError("libcuda.so.1: cannot open shared object file"),
        ModuleNotFoundError("No module named 'cupy'", name="cupy"),
        ModuleNotFoundError("No module named 'cupy.cuda'", name="cupy.cuda"),
        ModuleNotFoundError("No module named 'cupyx'", name="cupyx"),
    ],
)
def test_errors_of_users_code_that_say_that_there_is_no_gpu(problem: Exception) -> None:
    assert is_missing_device(problem)


@pytest.mark.parametrize(
    "problem",
    [AssertionError("1 of 4 elements differ"), ModuleNotFoundError("No module named 'cupy_helpers'", name="cupyx_own"),
     RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered"), KeyboardInterrupt()],
)  # fmt: skip
def test_other_errors_are_errors(problem: BaseException) -> None:
    assert not is_missing_device(problem)
