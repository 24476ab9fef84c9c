"""Machines to examine: each test says what is installed, what runs and what files say."""

from __future__ import annotations

import types
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from pytest_gpuperf.counters.failures import CountersUnavailable
from pytest_gpuperf.counters.run_ncu import INSTALL, Ncu
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
        self.fails: dict[str, str] = {}
        self.open = 0

    def _may_fail(self, name: str) -> None:
        if name in self.fails:
            raise NVMLError(self.fails[name])

    def nvmlInit(self) -> None:
        self._may_fail("nvmlInit")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        self._may_fail("nvmlSystemGetCudaDriverVersion_v2")
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        self._may_fail("nvmlDeviceGetCount")
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
        self.profiler: Ncu | CountersUnavailable = CountersUnavailable("no ncu", INSTALL)
        self.variables: dict[str, str] = {}

    def install(self, distribution: str, version: str, module: str | None = None) -> None:
        self.versions[distribution] = version
        self.modules[module or distribution] = types.ModuleType(module or distribution)

    def version(self, distribution: str) -> str | None:
        return self.versions.get(distribution)

    def load(self, module: str) -> ModuleType:
        found = self.modules.get(module, ImportError(f"No module named {module!r}"))
        if isinstance(found, Exception):
            raise found
        return found

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def environ(self, name: str) -> str | None:
        return self.variables.get(name)

    def ncu(self) -> Ncu:
        if isinstance(self.profiler, CountersUnavailable):
            raise self.profiler
        return self.profiler


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


@pytest.fixture
def gpu_machine(machine: FakeMachine) -> tuple[FakeMachine, Callable[..., FakeNvml]]:
    """A machine, and a way to plug GPUs into it."""

    def plug(**facts: object) -> FakeNvml:
        nvml = FakeNvml(**facts)  # type: ignore[arg-type]
        machine.modules["pynvml"] = nvml
        return nvml

    return machine, plug
