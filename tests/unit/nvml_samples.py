"""NVML as a machine without a GPU has it: a stand-in for ``pynvml``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any


class NVMLError(Exception):
    pass


class NotSupported(NVMLError):
    pass


class FakeNvml(ModuleType):
    """H200s of these UUIDs; ``answers`` by function name, or of a handle, an exception to raise it."""

    NVMLError, NVMLError_NotSupported, NVML_CLOCK_SM = NVMLError, NotSupported, 1

    def __init__(self, *uuids: str, pids: Sequence[int] = (), **answers: Any) -> None:
        super().__init__("pynvml")
        self.is_open = False
        handles = {uuid: number for number, uuid in enumerate(uuids)}
        self.answers = {
            "DeviceGetCount": len(uuids), "DeviceGetHandleByIndex": range(len(uuids)).__getitem__,
            "DeviceGetHandleByUUID": lambda uuid: handles.get(uuid, NVMLError("not found")),
            "DeviceGetUUID": uuids.__getitem__, "DeviceGetName": "NVIDIA H200", "DeviceGetMigMode": (0, 0),
            "DeviceGetCudaComputeCapability": (9, 0), "DeviceGetCurrentClocksEventReasons": 1,
            "DeviceGetClockInfo": 1980, "DeviceGetComputeRunningProcesses": [SimpleNamespace(pid=pid) for pid in pids],
            "SystemGetDriverVersion": "580.95.05", "SystemGetCudaDriverVersion_v2": 13000, "Init": None,
            "Shutdown": None, **answers,
        }  # fmt: skip

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.removeprefix("nvml") not in self.__dict__.get("answers", {}):
            raise AttributeError(name)

        def call(*given: Any) -> Any:
            found = self.answers[name.removeprefix("nvml")]
            found = found(*given) if callable(found) else found
            if isinstance(found, Exception):
                raise found
            self.is_open = name != "nvmlShutdown" and (self.is_open or name == "nvmlInit")
            return found

        return call
