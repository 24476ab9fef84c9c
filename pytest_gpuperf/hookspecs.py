"""The hook that a conftest or another plugin may implement, and the check of its result."""

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


def device_given(config: pytest.Config, worker: int | None) -> Device | None:
    """The result of ``pytest_gpuperf_device``; None without one.

    Raises ``pytest.UsageError`` that names the files or plugins that implement it.
    """
    caller = config.hook.pytest_gpuperf_device
    try:
        found: Device | None = caller(config=config, worker=worker)
    except (Exception, pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception) as problem:  # noqa: BLE001 any error of theirs
        what = f"raised {type(problem).__name__}: {problem}"
    else:
        if found is None or (hasattr(found, "facts") and not isinstance(found, type)):
            return found
        what = f"returned {found!r}, which has no facts"
    names = " or ".join(one.plugin_name for one in caller.get_hookimpls())
    raise pytest.UsageError(
        f"pytest_gpuperf_device of {names} {what}. To do: let it return None, or a device with facts"
    )
