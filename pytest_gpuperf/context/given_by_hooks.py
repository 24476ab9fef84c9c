"""What a conftest or another plugin gives through the hooks of this plugin, checked where it is given.

Errors name the files or plugins that implement the hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.counters.report import Reader
    from pytest_gpuperf.device.interface import Device


def device_given(config: pytest.Config, worker: int | None) -> Device | None:
    """What ``pytest_gpuperf_device`` returns; None if nothing.  Raises ``pytest.UsageError``."""
    given: Device | None = _asked(config, "pytest_gpuperf_device", worker=worker)
    if given is not None and (isinstance(given, type) or not hasattr(given, "facts")):
        raise _returned(config, "pytest_gpuperf_device", given, "a device, an object with facts")
    return given


def reader_given(config: pytest.Config) -> Reader | None:
    """What ``pytest_gpuperf_ncu_reader`` returns; None if nothing.  Raises ``pytest.UsageError``."""
    given: Reader | None = _asked(config, "pytest_gpuperf_ncu_reader")
    if given is not None and not callable(given):
        raise _returned(config, "pytest_gpuperf_ncu_reader", given, "a function that reads a report")
    return given


def _asked(config: pytest.Config, hook: str, **arguments: Any) -> Any:
    try:
        return getattr(config.hook, hook)(config=config, **arguments)
    except (Exception, pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception) as problem:
        raise pytest.UsageError(
            f"{hook} of {_places(config, hook)} raised {type(problem).__name__}: {problem}. To do: let it return None "
            "where it has nothing to give"
        ) from problem


def _returned(config: pytest.Config, hook: str, given: object, takes: str) -> pytest.UsageError:
    return pytest.UsageError(f"{hook} of {_places(config, hook)} returned {given!r}: it returns {takes}, or None")


def _places(config: pytest.Config, hook: str) -> str:
    return " or ".join(one.plugin_name for one in getattr(config.hook, hook).get_hookimpls())
