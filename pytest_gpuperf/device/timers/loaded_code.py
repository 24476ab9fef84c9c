"""The machine code that this process loads, whoever loads it: CUPTI hands over each cubin when it becomes a module.

One subscriber of CUPTI's callbacks, for the life of the process: a module that was loaded before it is not known.  A
process has a single subscriber at most, so under another profiler (ncu, nsys) there is none, and PyTorch's profiler
sees no kernels meanwhile.  Where several modules have a kernel of one name, as an autotuner leaves them, the launch
tells which one runs: CUDA's handle of its module is the one that loading it returned.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any

from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.elf import section_names
from pytest_gpuperf.device.timers.cupti_records import loaded_library

MOST_BYTES = 1 << 30
"""Of all modules together; those of PyTorch and cuBLAS that one test needs have some tens of megabytes."""
LEAST_REGISTERS = 16
"""What a record says of a kernel with fewer."""
LOADS = ("cuModuleLoad", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary")
LAUNCHES = {"cuLaunchKernel": 0, "cuLaunchCooperativeKernel": 0, "cuLaunchKernelEx": 1}
"""Calls of the driver, and which of their arguments is the function."""
_PER_THREAD = "_ptsz"
"""What the same calls end in where streams are those of threads."""
_DRIVER, _RESOURCE, _EXIT, _DESCRIPTOR = 1, 3, 1, 2
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
"""``CUpti_CallbackFunc``"""
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_uint32


class _Call(ctypes.Structure):
    """``CUpti_CallbackData``"""

    _fields_ = (
        ("site", _NUMBER), ("name", _POINTER), ("arguments", _POINTER), ("result", _POINTER), ("symbol", _POINTER),
        ("context", _POINTER), ("context_number", _NUMBER), ("data", _POINTER), ("correlation", _NUMBER),
    )  # fmt: skip


class _Module(ctypes.Structure):
    """``CUpti_ModuleResourceData``"""

    _fields_ = (("number", _NUMBER), ("size", ctypes.c_size_t), ("cubin", _POINTER))


@functools.cache
def watch_code() -> LoadedCode | None:
    """The machine code that is loaded from now on; None where CUPTI does not show it.  The first call counts."""
    with contextlib.suppress(ImportError, RuntimeError, OSError, AttributeError, KeyError):
        from cupti import cupti  # noqa: PLC0415 an extra

        with contextlib.suppress(cupti.cuptiError):
            cupti.get_timestamp()  # the binding loads the library with its first call
            return LoadedCode(cupti, loaded_library(), ctypes.CDLL("libcuda.so.1"))
    return None


class LoadedCode:
    """Made by ``watch_code``."""

    def __init__(self, cupti: Any, library: Any, driver: Any) -> None:
        """Raises the binding's ``cuptiError`` where another profiler has subscribed."""
        self._cupti, self._library, self._driver = cupti, library, driver
        self._calls = {
            int(getattr(cupti.driver_api_trace_cbid, name + ending)): argument
            for name, argument in LAUNCHES.items()
            for ending in ("", _PER_THREAD)
        }
        self._loaded: dict[int, bytes] = {}
        self._names: dict[int, bytes] = {}
        self._newest = self._kept_bytes = 0
        self._by_handle: dict[int, int] = {}
        """Numbers of modules by what loading them returned."""
        self._launched: dict[int, int] = {}
        """Handles of the modules of traced launches, by the correlation id of the call."""
        self._callback = Callback(self._on_event)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._callback))  # CUPTI has it until the process ends
        self._subscriber = ctypes.c_void_p()
        cupti.check_status(library.cuptiSubscribe(ctypes.byref(self._subscriber), self._callback, None))
        self._enable(_RESOURCE, int(cupti.CallbackIdResource.MODULE_LOADED))
        for name in LOADS:
            self._enable(_DRIVER, int(getattr(cupti.driver_api_trace_cbid, name)))

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Inside, launches are seen too, which costs some microseconds each."""
        self._launched.clear()
        for call in self._calls:
            self._enable(_DRIVER, call)
        try:
            yield
        finally:
            for call in self._calls:
                self._enable(_DRIVER, call, on=False)

    def of(self, symbol: str, correlation: int, registers: int, shared_bytes: int) -> bytes:
        """The cubin of a traced launch of a kernel of these registers and static shared bytes; empty if not known."""
        mangled = f".text.{symbol}\0".encode()
        found = {
            number: self._loaded[number] for number in list(self._loaded) if mangled in self._section_names(number)
        }
        number = self._by_handle.get(self._launched.get(correlation, 0), 0)
        codes = {found[number]} if number in found else set(found.values())
        if len(codes) > 1:
            codes = {one for one in codes if _figures(one, symbol) == (registers, shared_bytes)}
        return codes.pop() if len(codes) == 1 else b""

    def _enable(self, domain: int, call: int, *, on: bool = True) -> None:
        self._cupti.check_status(self._library.cuptiEnableCallback(int(on), self._subscriber, domain, call))

    def _on_event(self, _user: int, domain: int, event: int, data: int) -> None:
        if domain == _RESOURCE:
            self._keep(_Module.from_address(_pointer(data, _DESCRIPTOR)))
            return
        call = _Call.from_address(data)
        if event in self._calls:
            function, module = _pointer(call.arguments, self._calls[event]), ctypes.c_void_p()
            if call.site != _EXIT and not self._driver.cuFuncGetModule(ctypes.byref(module), ctypes.c_void_p(function)):
                self._launched[call.correlation] = module.value or 0
        elif call.site == _EXIT:
            self._by_handle[_pointer(_pointer(call.arguments))] = self._newest

    def _keep(self, module: _Module) -> None:
        self._newest = module.number
        if module.cubin and self._kept_bytes + module.size <= MOST_BYTES:
            self._kept_bytes += module.size
            self._loaded[module.number] = ctypes.string_at(module.cubin, module.size)

    def _section_names(self, number: int) -> bytes:
        if number not in self._names:
            self._names[number] = section_names(self._loaded[number])
        return self._names[number]


def _pointer(address: int, place: int = 0) -> int:
    """The pointer that lies there, behind so many others."""
    return ctypes.c_void_p.from_address(address + place * ctypes.sizeof(ctypes.c_void_p)).value or 0


def _figures(cubin: bytes, symbol: str) -> tuple[int, int]:
    kernel = read_cubin(cubin).kernels[symbol]
    return max(kernel.registers, LEAST_REGISTERS), kernel.shared_bytes
