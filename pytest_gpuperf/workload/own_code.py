"""Whether what measures is still what was installed: functions of this package and the clocks that it reads.

A guard against a kernel's module that puts its own functions in their place, not against one that hides that it did:
code in the same process can do anything (docs/explanation/security.md, "Kernels that are not trusted").
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

_NAME = __name__.partition(".")[0]
_PACKAGE = f"{Path(__file__).parents[1]}/"
_STANDARD = f"{Path(functools.__file__).parent}/"
_ROOMS = tuple(f"{_NAME}.{room}." for room in ["timing", "device", "workload", "judge", "baselines", "context"])
"""Whose functions a verdict on a time comes from."""
_LIBRARIES = {*sys.stdlib_module_names, "_pytest", "cupy", "filelock", "msgspec", "numpy", "scipy"} - {"unittest"}
"""Whose functions these rooms have among their names; a mock is none of them."""
_NATIVE = {
    "time": ("perf_counter", "perf_counter_ns"),
    "cupy.cuda": ("get_elapsed_time",),
    "cupti.cupti": ("activity_enable", "activity_flush_all", "activity_push_external_correlation_id", "get_timestamp"),
}
"""Clocks and tracing, which are compiled code: a Python function there is not theirs."""


def replaced() -> str:
    """Name of the first function that is not what was installed; empty if all are."""
    for library, names in _NATIVE.items():
        for name in names:
            if isinstance(getattr(sys.modules.get(library), name, None), FunctionType):
                return f"{library}.{name}"
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith(_ROOMS) and isinstance(module, ModuleType):
            for name, value in _members(module_name, module):
                if not _is_installed(value):
                    return name
    return ""


def _members(module_name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What may be called of a module and of its own classes."""
    for name, value in list(vars(module).items()):
        yield f"{module_name}.{name}", value
        if isinstance(value, type) and value.__module__ == module_name:
            for attribute, member in list(vars(value).items()):
                yield f"{module_name}.{name}.{attribute}", member


def _is_installed(value: Any) -> bool:
    value = _unwrapped(value)
    if not isinstance(value, FunctionType):
        return not callable(value) or isinstance(value, type) or _is_of_known_class(value)
    file = value.__code__.co_filename
    if file == contextlib.__file__ and hasattr(value, "__wrapped__"):
        return _is_installed(value.__wrapped__)
    standard = file.startswith(_STANDARD) and "-packages" not in file  # which lie in there
    made_by_dataclasses = file == "<string>" and value.__name__.startswith("__")
    return standard or made_by_dataclasses or file.startswith((_PACKAGE, "<frozen ")) or _is_of_library(value)


def _is_of_known_class(value: Any) -> bool:
    """Whether its class is compiled, or Python of this package or of a library."""
    home = type(value).__module__
    file = getattr(sys.modules.get(home), "__file__", None) or ""
    return not file.endswith(".py") or home.partition(".")[0] in {_NAME, *_LIBRARIES}


def _is_of_library(function: FunctionType) -> bool:
    """Whether it is what its library has by its name."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function and function.__module__.partition(".")[0] in _LIBRARIES


def _unwrapped(value: Any) -> Any:
    """The function that a descriptor, a bound method or a cache is made of."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    if isinstance(value, functools.partial):
        return value.func
    if isinstance(value, staticmethod | classmethod | MethodType):
        return value.__func__
    return value if isinstance(value, FunctionType) else getattr(value, "__wrapped__", value)
