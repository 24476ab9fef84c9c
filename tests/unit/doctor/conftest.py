"""Machines to examine: each test says what is installed, what runs and what files say."""

from __future__ import annotations

import types
from types import ModuleType, SimpleNamespace

import pytest

from pytest_gpuperf.doctor.findings import HostMachine


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):  # noqa: N801  (NVML's own spelling)
    pass


class FakeNvml(ModuleType):
    """As much of pynvml as the probes use: one H200 unless told otherwise."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported

    def __init__(self, *, count: int = 1, cuda: int = 13000, mig: int | None = 0, pids: tuple[int, ...] | None = ()):
        super().__init__("pynvml")
        self.count, self.cuda, self.mig, self.pids = count, cuda, mig, pids
        self.fails = ""
        self.open = 0

    def __getattribute__(self, name: str) -> object:
        if name.startswith("nvml") and name == self.fails:
            raise NVMLError("Driver Not Loaded")
        return super().__getattribute__(name)

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:
        if self.mig is None:
            raise NVMLError_NotSupported("Not Supported")
        return self.mig, self.mig

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        if self.pids is None:
            raise NVMLError_NotSupported("Not Supported")
        return [SimpleNamespace(pid=pid) for pid in self.pids]


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
