"""Keeps what ``from_cupy`` reads of kernels of CuPy, and the code that CuPy generates, as fixtures.  Needs no GPU.

Run once per CuPy version, each in an environment of its own:

    pip install cupy-cuda13x==14.2.0 && python make_cupy_fixtures.py

The code of an ElementwiseKernel is what ``cached_codes`` shows after a call on a GPU; without one it comes from the
functions behind that, which are private.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupy._core import _carray, _kernel, _scalar

HERE = Path(__file__).parent
SCALE = 'extern "C" __global__ void scale(float* x, float by, int n) { int i = threadIdx.x; if (i < n) x[i] *= by; }'
COMPLEX = '#include <cuComplex.h>\nextern "C" __global__ void conj(cuFloatComplex* x) { *x = cuConjf(*x); }'
COPY = "template <class T> __global__ void copy(T* x, T* y) { y[threadIdx.x] = x[threadIdx.x]; }"

RAW = {
    "scale": cupy.RawKernel(SCALE, "scale", ("--use_fast_math",)),
    "conj": cupy.RawKernel(COMPLEX, "conj", translate_cucomplex=True),
    "grid": cupy.RawKernel(SCALE, "scale", backend="nvcc", enable_cooperative_groups=True),
}
MODULES = {
    "copies": cupy.RawModule(code=COPY, name_expressions=["copy<float>", "copy<int>"]),
    "complex": cupy.RawModule(code=COMPLEX),
    "cubin": cupy.RawModule(path="kernels/scale.cubin"),
    "ptx": cupy.RawModule(path="kernels/scale.ptx"),
}
ELEMENTWISE = {
    "difference": cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference"),
    "everything": cupy.ElementwiseKernel(
        "T x, S y, float32 a, raw I r", "T z, complex64 w, bool b", "z = x * y + r[i]; b = a > 0", "everything",
        preamble="__device__ int unused;", loop_prep="int q = 0", after_loop="q = 1", options=("-DEXTRA",),
    ),
}  # fmt: skip
CASES: list[tuple[str, list[tuple[str, Any]], int, bool]] = [
    ("difference", [("float32", (1, True, True))] * 3, 1, True),
    ("difference", [("float64", (2, False, True)), ("float64", None), ("float64", (2, True, False))], 2, False),
    ("everything", [
        ("float16", (2, True, True)), ("int64", (2, False, True)), ("float32", None), ("uint8", (1, True, True)),
        ("float16", (2, True, True)), ("complex64", (2, True, True)), ("bool", (2, True, True)),
    ], 2, True),
]  # fmt: skip
"""Kernel; type and (axes, contiguous, narrow) of each argument; axes of the index; whether it is narrow."""


def main() -> None:
    facts = {
        "raw": {name: {"class": "RawKernel", "state": kernel.__getstate__()} for name, kernel in RAW.items()},
        "modules": {name: module_facts(module) for name, module in MODULES.items()},
        "elementwise": {name: elementwise_facts(kernel) for name, kernel in ELEMENTWISE.items()},
        "cases": [[name, types, axes, narrow, code(name, types, axes, narrow)] for name, types, axes, narrow in CASES],
    }
    text = json.dumps(facts, indent=1, sort_keys=True, default=str)
    (HERE / f"cupy-{cupy.__version__}.json").write_text(text + "\n", encoding="utf-8")


def module_facts(module: Any) -> dict[str, Any]:
    names = ("code", "options", "backend", "file_path", "enable_cooperative_groups", "name_expressions")
    return {name: getattr(module, name) for name in names}


def elementwise_facts(kernel: Any) -> dict[str, Any]:
    names = ("name", "operation", "preamble", "reduce_dims", "kwargs", "nin", "nout")
    parameters = {side: [parameter_facts(one) for one in getattr(kernel, side)] for side in ("in_params", "out_params")}
    return {**{name: getattr(kernel, name) for name in names}, **parameters}


def parameter_facts(one: Any) -> dict[str, Any]:
    facts = {name: getattr(one, name) for name in ("name", "ctype", "raw", "is_const")}
    return {**facts, "dtype": None if one.dtype is None else np.dtype(one.dtype).name}


def code(name: str, types: list[tuple[str, Any]], axes: int, narrow: bool) -> str:
    kernel = ELEMENTWISE[name]
    arrays = [np.dtype(dtype) if of is not None else None for dtype, of in types]
    type_map = kernel._decide_params_type(tuple(arrays[: kernel.nin]), tuple(arrays[kernel.nin :]))[2]
    infos = [
        _kernel._ArgInfo(3, _scalar.CScalar, np.dtype(dtype), 0, True, True) if of is None
        else _kernel._ArgInfo(1, cupy.ndarray, np.dtype(dtype), *of)
        for dtype, of in types
    ]  # fmt: skip
    index = _kernel._ArgInfo(2, _carray.Indexer, None, axes, True, narrow)
    return str(_kernel._get_elementwise_kernel_code(
        (*infos, index), type_map, kernel.params, kernel.operation, kernel.name, kernel.preamble, **kernel.kwargs
    ))  # fmt: skip


if __name__ == "__main__":
    main()
