"""The machine code that this process loads, whoever loads it: CUPTI hands over each cubin when it becomes a module.

One subscriber of CUPTI's callbacks, for the life of the process: a module that was loaded before it is not known.  A
process has a single subscriber at most, so under another profiler (ncu, nsys) there is none.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.elf import section_names
from pytest_gpuperf.device.timers.cupti_records import loaded_library

MOST_BYTES = 1 << 30
"""Of all modules together: those of PyTorch's libraries have some hundred megabytes, loaded one by one."""
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
"""``CUpti_CallbackFunc``"""


class _Resource(ctypes.Structure):
    """``CUpti_ResourceData``"""

    _fields_ = (("context", ctypes.c_void_p), ("handle", ctypes.c_void_p), ("descriptor", ctypes.c_void_p))


class _Module(ctypes.Structure):
    """``CUpti_ModuleResourceData``"""

    _fields_ = (("number", ctypes.c_uint32), ("size", ctypes.c_size_t), ("cubin", ctypes.c_void_p))


@functools.cache
def watch_code() -> LoadedCode | str:
    """The machine code that is loaded from now on; or why it is not seen.  The first call counts."""
    try:
        from cupti import cupti  # noqa: PLC0415 an extra

        cupti.get_timestamp()  # the binding loads the library with its first call
        return LoadedCode(cupti, loaded_library())
    except (ImportError, OSError, RuntimeError, AttributeError, KeyError) as problem:
        return f"CUPTI gives no access to loaded machine code ({problem})"


class LoadedCode:
    """Made by ``watch_code``."""

    def __init__(self, cupti: Any, library: Any) -> None:
        """Raises the binding's ``cuptiError`` where another profiler has subscribed."""
        self._loaded: dict[int, bytes] = {}
        self._names: dict[int, bytes] = {}
        self._kept_bytes = 0
        self._domain, self._event = int(cupti.CallbackDomain.RESOURCE), int(cupti.CallbackIdResource.MODULE_LOADED)
        self._callback = Callback(self._on_module)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._callback))  # CUPTI has it until the process ends
        subscriber = ctypes.c_void_p()
        cupti.check_status(library.cuptiSubscribe(ctypes.byref(subscriber), self._callback, None))
        cupti.check_status(library.cuptiEnableCallback(1, subscriber, self._domain, self._event))

    def of(self, symbol: str, registers: int, shared_bytes: int) -> bytes:
        """The cubin with a kernel of these registers and static shared bytes; empty if there is none, or several."""
        mangled = f".text.{symbol}\0".encode()
        found = {self._loaded[number] for number in list(self._loaded) if mangled in self._section_names(number)}
        if len(found) > 1:
            found = {one for one in found if _figures(one, symbol) == (registers, shared_bytes)}
        return found.pop() if len(found) == 1 else b""

    def _on_module(self, _user: int, _domain: int, _event: int, data: int) -> None:
        module = _Module.from_address(_Resource.from_address(data).descriptor)
        if module.cubin and self._kept_bytes + module.size <= MOST_BYTES:
            self._kept_bytes += module.size
            self._loaded[module.number] = ctypes.string_at(module.cubin, module.size)

    def _section_names(self, number: int) -> bytes:
        """The names of a module's sections, each with a zero behind it; empty if it is no ELF file."""
        if number not in self._names:
            self._names[number] = section_names(self._loaded[number])
        return self._names[number]


def _figures(cubin: bytes, symbol: str) -> tuple[int, int]:
    kernel = read_cubin(cubin).kernels[symbol]
    return kernel.registers, kernel.shared_bytes
