"""The GPU of these tests; without one they are skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_gpuperf.device import open_device
from pytest_gpuperf.device.errors import NoDevice


@pytest.fixture(scope="session")
def cuda_device() -> Iterator[Any]:
    """This machine's GPU, held for these tests alone."""
    try:
        device = open_device()
    except NoDevice as problem:
        pytest.skip(f"needs a GPU: {problem}")
    with device.lock():
        yield device
