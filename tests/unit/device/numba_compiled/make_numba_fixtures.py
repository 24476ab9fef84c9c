"""Compiles small Numba kernels to PTX, without a GPU, and keeps what ``from_numba`` reads of them as fixtures.

Run in an environment of its own:

    pip install numba-cuda==0.30.4 nvidia-nvvm==13.0.88 nvidia-cuda-nvrtc && python make_numba_fixtures.py

The JSON file has of each kernel the options of ``@cuda.jit``, its arguments by name and type, and PTX
by architecture; and the parameters that ``numba.cuda.compile`` takes.  Symbols hold no folders of this machine.
"""

from __future__ import annotations

import inspect
import json
from importlib import metadata
from pathlib import Path
from typing import Any

from numba import cuda, float32, int32, types

HERE = Path(__file__).parent
ARCHITECTURES = {"sm_80": (8, 0), "sm_90": (9, 0), "sm_120": (12, 0)}


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit(fastmath=True, max_registers=32, lto=False)
def transpose(x, y, n, factor, negate):
    tile = cuda.shared.array((16, 17), dtype=float32)
    i, j = cuda.grid(2)
    tile[cuda.threadIdx.x, cuda.threadIdx.y] = x[i, j]
    cuda.syncthreads()
    value = tile[cuda.threadIdx.y, cuda.threadIdx.x] * factor.real + n
    y[j, i] = -value if negate else value


KERNELS = {
    "axpy": (axpy, (float32, float32[::1], float32[::1])),
    "transpose": (transpose, (float32[:, ::1], float32[:, :], int32, types.complex64, types.boolean)),
}


def main() -> None:
    version = metadata.version("numba-cuda")
    facts = {
        "package": "numba-cuda",
        "version": version,
        "compile": [*inspect.signature(cuda.compile).parameters],
        "kernels": {name: kernel_facts(*of) for name, of in KERNELS.items()},
    }
    text = json.dumps(facts, indent=1, sort_keys=True)
    (HERE / f"numba-cuda-{version}.json").write_text(text + "\n", encoding="utf-8")


def kernel_facts(kernel: Any, signature: tuple[Any, ...]) -> dict[str, Any]:
    kinds = bool | int | str | list | tuple
    kept = {key: value for key, value in kernel.targetoptions.items() if isinstance(value, kinds)}
    fastmath = bool(kernel.targetoptions["fastmath"])
    return {
        "options": kept,
        "names": [*inspect.signature(kernel.py_func).parameters],
        "types": [type_facts(one) for one in signature],
        "ptx": {
            arch: cuda.compile(kernel.py_func, signature, device=False, abi="numba", cc=cc, fastmath=fastmath)[0]
            for arch, cc in ARCHITECTURES.items()
        },
    }


def type_facts(one: Any) -> dict[str, Any]:
    if isinstance(one, types.Array):
        return {"name": str(one), "ndim": one.ndim, "layout": one.layout, "dtype": str(one.dtype)}
    return {"name": str(one)}


if __name__ == "__main__":
    main()
