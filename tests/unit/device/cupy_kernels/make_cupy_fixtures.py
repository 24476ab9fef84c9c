"""Keeps what ``from_cupy`` reads of kernels of CuPy as fixtures.  Needs no GPU.

Run once per CuPy version, each in an environment of its own:

    pip install cupy-cuda13x==14.2.0 && python make_cupy_fixtures.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cupy

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


def main() -> None:
    facts = {
        "raw": {name: {"class": "RawKernel", "state": kernel.__getstate__()} for name, kernel in RAW.items()},
        "modules": {name: module_facts(module) for name, module in MODULES.items()},
    }
    text = json.dumps(facts, indent=1, sort_keys=True, default=str)
    (HERE / f"cupy-{cupy.__version__}.json").write_text(text + "\n", encoding="utf-8")


def module_facts(module: Any) -> dict[str, Any]:
    names = ("code", "options", "backend", "file_path", "enable_cooperative_groups", "name_expressions")
    return {name: getattr(module, name) for name in names}


if __name__ == "__main__":
    main()
