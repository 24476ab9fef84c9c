"""Hooks that a conftest or another plugin may implement, and what they give, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.counters.report import Reader
    from pytest_gpuperf.device.interface import Device


@pytest.hookspec(firstresult=True)
def pytest_gpuperf_device(config: pytest.Config, worker: int | None) -> Device | None:
    """Return the GPU that this process measures on; None leaves the choice to the plugin.

    Called once per process, when the first test asks for a fixture.  ``worker`` is the number of the pytest-xdist
    worker, None without workers.  For GPUs that the plugin cannot find by itself and for simulated ones in tests.
    """


@pytest.hookspec(firstresult=True)
def pytest_gpuperf_ncu_reader(config: pytest.Config) -> Reader | None:
    """Return what reads the reports of Nsight Compute; None leaves the choice to the plugin.

    Called once per run, before the profiled process is started, in the process that starts it.  Meant for other
    readers of ``.ncu-rep`` files than the package ``ncu-report``, and for tests.
    """


def device_given(config: pytest.Config, worker: int | None) -> Device | None:
    """What ``pytest_gpuperf_device`` returns; None if nothing.  Raises ``pytest.UsageError``."""
    device: Device | None = given(config, "pytest_gpuperf_device", "facts", worker=worker)
    return device


def given(config: pytest.Config, hook: str, attribute: str, **arguments: Any) -> Any:
    """What a hook returns that takes objects with this attribute; None if nothing.

    Raises ``pytest.UsageError`` that names the files or plugins that implement it.
    """
    caller = getattr(config.hook, hook)
    try:
        found = caller(config=config, **arguments)
    except (Exception, pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception) as problem:  # noqa: BLE001 any error of theirs
        what = f"raised {type(problem).__name__}: {problem}"
    else:
        if found is None or (hasattr(found, attribute) and not isinstance(found, type)):
            return found
        what = f"returned {found!r}, which has no {attribute}"
    names = " or ".join(one.plugin_name for one in caller.get_hookimpls())
    raise pytest.UsageError(f"{hook} of {names} {what}. To do: let it return None where it has nothing to give")
