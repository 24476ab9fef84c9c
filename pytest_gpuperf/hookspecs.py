"""The hook that a conftest or another plugin may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.device.interface import Device


@pytest.hookspec(firstresult=True)
def pytest_gpuperf_device(config: pytest.Config, worker: int | None) -> Device | None:
    """Return the GPU that this process measures on; None leaves the choice to the plugin.

    Called once per process, when the first test asks for a fixture.  ``worker`` is the number of the pytest-xdist
    worker, None without workers.  For GPUs that the plugin cannot find by itself and for simulated ones in tests.
    """
