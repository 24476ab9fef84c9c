"""The GPU that these tests run on; without one they are skipped with the reason."""

from __future__ import annotations

import pytest

from pytest_gpuperf.device.cuda import CudaDevice
from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.errors import NoDevice


@pytest.fixture(scope="session")
def opened_device() -> CudaDevice | NoDevice:
    """The device of this process, or why there is none."""
    try:
        return open_device()
    except NoDevice as problem:
        return problem


@pytest.fixture
def cuda_device(opened_device: CudaDevice | NoDevice) -> CudaDevice:
    """The GPU, with its stream current."""
    if isinstance(opened_device, NoDevice):
        pytest.skip(f"needs a GPU: {opened_device.reason}")
    opened_device.stream.use()
    return opened_device
