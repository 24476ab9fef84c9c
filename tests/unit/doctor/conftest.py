"""Machines to examine: each test says what is installed, what runs and what files say."""

from __future__ import annotations

import types
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from pytest_gpuperf.doctor.findings import HostMachine


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):  # noqa: N801  (NVML's own spelling)
    pass


class FakeNvml(ModuleType):
    """As much of pynvml as the probes use: one H200 unless told otherwise."""

    def __init__(self, *, count: int = 1, cuda: int = 13000, mig: int | None = 0, pids: tuple[int, ...] | None = ()):
        super().__init__("pynvml")
        self.fails = ""
        self.open = 0
        running = None if pids is None else [SimpleNamespace(pid=pid) for pid in pids]
        self.answers: dict[str, object] = {
            "nvmlSystemGetDriverVersion": "580.95.05", "nvmlSystemGetCudaDriverVersion_v2": cuda,
            "nvmlDeviceGetCount": count, "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetCudaComputeCapability": (9, 0), "nvmlDeviceGetMigMode": None if mig is None else (mig, mig),
            "nvmlDeviceGetComputeRunningProcesses": running,
        }  # fmt: skip
        self.NVMLError, self.NVMLError_NotSupported = NVMLError, NVMLError_NotSupported

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*handle: int) -> object:
            self.open += (name == "nvmlInit") - (name == "nvmlShutdown")
            if name in ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex"):
                return sum(handle)
            if name == "nvmlDeviceGetUUID":
                return f"GPU-{sum(handle)}"
            if self.answers[name] is None:
                raise NVMLError_NotSupported("Not Supported")
            return self.answers[name]

        if name == self.fails:
            raise NVMLError("Driver Not Loaded")
        return call


class FakeMachine(HostMachine):
    """A machine with nothing on it; tests put things there."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self.modules: dict[str, ModuleType | Exception] = {}
        self.files: dict[str, str] = {}

    def install(self, distribution: str, version: str, module: str) -> None:
        self.versions[distribution] = version
        self.modules[module] = types.ModuleType(module)

    def plug(self, **facts: object) -> FakeNvml:
        """Plug GPUs into it."""
        nvml = FakeNvml(**facts)  # type: ignore[arg-type]
        self.modules["pynvml"] = nvml
        return nvml

    def version(self, distribution: str) -> str | None:
        return self.versions.get(distribution)

    def load(self, module: str) -> ModuleType:
        found = self.modules.get(module, ImportError(f"No module named {module!r}"))
        if isinstance(found, Exception):
            raise found
        return found

    def read(self, path: str) -> str:
        return self.files.get(path, "")


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()
