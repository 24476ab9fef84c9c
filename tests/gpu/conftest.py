"""The GPU that these tests run on; without one they are skipped with the reason."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable

import pytest
import warm_python

from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.gpu import Gpu


@functools.cache
def opened() -> CudaDevice | NoDevice:
    """The device of this process, or why there is none."""
    try:
        return open_device()
    except NoDevice as problem:
        return problem


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skipped at one place, whose reason is then printed once for all."""
    if "cuda_device" in getattr(item, "fixturenames", ()) and isinstance(problem := opened(), NoDevice):
        pytest.skip(f"needs a GPU: {problem}")


@pytest.fixture(autouse=True)
def cold_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of pytest are this process's own children: of a fork of the warm one, this process would be a stranger that
    uses its GPU."""
    monkeypatch.setenv(warm_python.COLD, "1")


@pytest.fixture
def cuda_device() -> CudaDevice:
    """The GPU, with its stream current."""
    device = opened()
    assert isinstance(device, CudaDevice)
    device.stream.use()
    return device


@pytest.fixture
def gpu(cuda_device: CudaDevice) -> Gpu:
    return Gpu(cuda_device)


@pytest.fixture
def need() -> Callable[..., None]:
    """Skips a test without these modules; it imports none."""

    def skip(*modules: str) -> None:
        for name in modules:
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"needs {name}")

    return skip
