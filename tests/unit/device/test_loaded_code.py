"""Which loaded cubin a launch runs, by CUPTI's callbacks: a stand-in for the library calls them as CUPTI does."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from handed_samples import NARROW, WIDE, compiled

from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.device.timers.loaded_code import LAUNCHES, LOADS, LoadedCode, _Call, _Module

NAMES = [*LOADS, *LAUNCHES, *(f"{name}_ptsz" for name in LAUNCHES)]
FIRST, SECOND = (bytes(compiled(stem).asm["cubin"]) for stem in (WIDE, NARROW))
"""Both have a kernel ``add``."""


class Cupti:
    """Binding, library and driver in one."""

    CallbackIdResource = SimpleNamespace(MODULE_LOADED=6)
    driver_api_trace_cbid = SimpleNamespace(**{name: number for number, name in enumerate(NAMES)})
    taken = False

    def __init__(self) -> None:
        self.enabled: set[tuple[int, int]] = set()
        self._kept: list[Any] = []
        self._modules = 0

    def check_status(self, status: int) -> None:
        if status:
            raise RuntimeError(f"status {status}")

    def cuptiSubscribe(self, _subscriber: Any, callback: Any, _user: None) -> int:
        self._callback = callback
        return 39 if self.taken else 0

    def cuptiEnableCallback(self, on: int, _subscriber: Any, domain: int, call: int) -> int:
        (self.enabled.add if on else self.enabled.discard)((domain, call))
        return 0

    def cuFuncGetModule(self, module: Any, function: Any) -> int:
        """Handles of functions are those of their modules and 1; of a library's kernel it has none."""
        module._obj.value = function.value - 1
        return 400 if function.value % 2 == 0 else 0

    def load(self, cubin: bytes, handle: int = 0) -> None:
        """Load a module, by ``cuModuleLoadData`` where it gets a handle."""
        self._modules += 1
        content, out = ctypes.create_string_buffer(cubin, len(cubin)), ctypes.c_void_p(handle)
        module = _Module(self._modules, len(cubin), ctypes.addressof(content))
        resource = (ctypes.c_void_p * 3)(None, None, ctypes.addressof(module))  # CUpti_ResourceData
        self._callback(None, 3, 6, ctypes.addressof(resource))
        if handle:
            self._call("cuModuleLoadData", 1, [ctypes.addressof(out)])

    def launch(self, correlation: int, function: int, name: str = "cuLaunchKernel") -> None:
        self._call(name, 0, [0] * LAUNCHES[name.removesuffix("_ptsz")] + [function], correlation)

    def _call(self, name: str, site: int, arguments: list[int], correlation: int = 0) -> None:
        number = NAMES.index(name)
        if (1, number) in self.enabled:
            words = (ctypes.c_void_p * len(arguments))(*arguments)
            data = _Call(site=site, arguments=ctypes.addressof(words), correlation=correlation)
            self._callback(None, 1, number, ctypes.addressof(data))


@pytest.fixture
def cupti() -> Cupti:
    return Cupti()


@pytest.fixture
def code(cupti: Cupti) -> LoadedCode:
    return LoadedCode(cupti, cupti, cupti)


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuLaunchKernelEx_ptsz"])
def test_launch_tells_one_of_several_modules_with_its_symbol(cupti: Cupti, code: LoadedCode, call: str) -> None:
    cupti.load(FIRST, handle=0x10)
    cupti.load(SECOND, handle=0x20)
    cupti.launch(1, 0x11, call)  # not traced
    with code.tracing():
        cupti.launch(2, 0x11, call)
        cupti.launch(3, 0x21, call)
    assert [code.of("add", number, 0, 0) for number in (1, 2, 3)] == [b"", FIRST, SECOND]
    assert not code.of("another", 2, 0, 0)


def test_module_of_a_library_is_told_by_symbol_and_figures(cupti: Cupti, code: LoadedCode) -> None:
    cupti.load(b"no cubin")
    cupti.load(FIRST)
    with code.tracing():
        cupti.launch(1, 0x12)
    assert code.of("add", 1, 0, 0) == FIRST
    cupti.load(FIRST)  # once more, by another thread's library
    assert code.of("add", 1, 0, 0) == FIRST
    cupti.load(SECOND)
    figures = [max(read_cubin(one).kernels["add"].registers, 16) for one in (FIRST, SECOND)]
    found = [code.of("add", 1, registers, 0) for registers in (*figures, 250)]
    assert found == ([b""] * 3 if figures[0] == figures[1] else [FIRST, SECOND, b""])


def test_other_profiler_leaves_none(cupti: Cupti) -> None:
    cupti.taken = True
    with pytest.raises(RuntimeError, match="status 39"):
        LoadedCode(cupti, cupti, cupti)
