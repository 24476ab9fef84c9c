"""The GPU that a process would take, found by NVML alone."""

from __future__ import annotations

import sys

import pytest

from pytest_gpuperf.device import discovery


class NVMLError(Exception):
    pass


class Nvml:
    """Two GPUs: an H200, then an A100."""

    NVMLError = NVMLError
    CAPABILITIES = {"0": (9, 0), "1": (8, 0), "GPU-aa": (8, 0), "MIG-bb": (9, 0)}  # noqa: RUF012

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return self.nvmlDeviceGetHandleByUUID(str(index))

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.CAPABILITIES:
            raise NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return self.CAPABILITIES[handle]


@pytest.mark.parametrize(
    ("visible", "arch"),
    [(None, "sm_90"), ("1", "sm_80"), ("1,0", "sm_80"), ("GPU-aa", "sm_80"), ("MIG-bb", "sm_90"), ("", None),
     ("7", None), ("none", None)],
)  # fmt: skip
def test_the_first_visible_gpu_is_asked(monkeypatch: pytest.MonkeyPatch, visible: str | None, arch: str | None) -> None:
    monkeypatch.setattr(discovery.os, "environ", {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    assert discovery.first_architecture() == arch


def test_without_a_driver_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDriver(Nvml):
        def nvmlInit(self) -> None:
            raise NVMLError("Driver Not Loaded")

    monkeypatch.setitem(sys.modules, "pynvml", NoDriver())
    assert discovery.first_architecture() is None
