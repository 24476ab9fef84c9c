"""Kernels as CuPy 13.6 to 14.2 make them: stand in for CuPy's ``RawKernel`` and ``RawModule``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

SCALE = 'extern "C" __global__ void scale(float* x, float by, int n) { int i = threadIdx.x; if (i < n) x[i] *= by; }'
COPY = "template <class T> __global__ void copy(T* x, T* y) { y[threadIdx.x] = x[threadIdx.x]; }"
MODULE = {"backend": "nvrtc", "enable_cooperative_groups": False, "file_path": None, "options": ()}
STATE = {**MODULE, "jitify": False, "name_expressions": None, "raw_ver": 2, "translate_cucomplex": False}
MODULES = {
    "copies": {**MODULE, "code": COPY, "name_expressions": ("copy<float>", "copy<int>")},
    "cubin": {**MODULE, "code": None, "file_path": "kernels/scale.cubin", "name_expressions": None},
}


class RawKernel:
    """``cupy.RawKernel``, as far as it is kept: what is readable, and its state."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self.code, self.name, self.backend = state["code"], state["name"], state["backend"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self._state, "options": tuple(self._state["options"])}


def raw(name: str, /, **state: Any) -> RawKernel:
    return RawKernel({**STATE, "name": name, "code": SCALE, "options": ("--use_fast_math",), **state})


def module(name: str) -> SimpleNamespace:
    return SimpleNamespace(**MODULES[name], get_function=None)
