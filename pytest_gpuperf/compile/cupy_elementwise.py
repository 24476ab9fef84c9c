"""The CUDA source of a ``cupy.ElementwiseKernel`` for given types, as CuPy 13 and 14 generate it.

CuPy generates it at the first call, on a GPU, and shows it in ``kernel.cached_codes``.  Here it is generated of the
same facts, which the kernel tells (``in_params``, ``operation``, ...), for any architecture and without a GPU.  The
tests compare both.  An array is a ``CArray``, the loop runs over a ``CIndexer``: templates of CuPy's ``carray.cuh``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.compile.compile_errors import UnsupportedCupyKernel
from pytest_gpuperf.compile.cupy_code import HEADERS, REMEDY, cupy_options, headers_of, including
from pytest_gpuperf.compile.source import KernelSource

_C_TYPES = {
    "float64": "double", "float32": "float", "float16": "float16", "complex128": "thrust::complex<double>",
    "complex64": "thrust::complex<float>", "int64": "long long", "int32": "int", "int16": "short",
    "int8": "signed char", "uint64": "unsigned long long", "uint32": "unsigned int", "uint16": "unsigned short",
    "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip
_FLOAT16 = "cupy/float16.cuh"


class ElementType(NamedTuple):
    """All that the source depends on of one argument."""

    dtype: np.dtype[Any]
    axes: int | None = None
    """Of an array; None for a number."""
    contiguous: bool = True
    narrow: bool = True
    """Whether 32 bits are enough for its offsets."""

    @property
    def label(self) -> str:
        """Tells kernels for other types apart: ``float32[2d]``."""
        return self.dtype.name if self.axes is None else f"{self.dtype.name}[{self.axes}d]"

    @property
    def c_type(self) -> str:
        name = _C_TYPES[self.dtype.name]
        return name if self.axes is None else f"CArray<{name}, {self.axes}, {self.contiguous:d}, {self.narrow:d}>"


def require_elementwise(kernel: Any) -> None:
    """Raise ``UnsupportedCupyKernel`` for what is no ElementwiseKernel."""
    if not all(hasattr(kernel, name) for name in ("in_params", "out_params", "operation", "preamble")):
        raise UnsupportedCupyKernel(
            f"from_cupy takes args= for an ElementwiseKernel, not for a {type(kernel).__name__}. {REMEDY}"
        )


def elementwise_source(kernel: Any, types: Sequence[ElementType], axes: int, narrow: bool) -> KernelSource:
    """The source for arguments of these types, looped over an index of so many axes; raises ``KeyError`` for others."""
    extra = dict(kernel.kwargs)
    options = cupy_options(kernel, extra.pop("options", ()))
    folder = headers_of(kernel)
    half = (_FLOAT16,) if folder is not None and (folder / _FLOAT16).exists() else ()
    text = including(*HEADERS, *half) + _code(kernel, types, f"CIndexer<{axes}, {narrow:d}>", **extra)
    return KernelSource(text=text, name=kernel.name, options=options)


def known_type(dtype: np.dtype[Any]) -> bool:
    """Whether CuPy's kernels have a type for it."""
    return dtype.name in _C_TYPES


def _code(kernel: Any, types: Sequence[ElementType], indexer: str, loop_prep: str = "", after_loop: str = "") -> str:
    parameters = list(zip((*kernel.in_params, *kernel.out_params), types, strict=True))
    letters = {one.ctype: _C_TYPES[of.dtype.name] for one, of in parameters if one.dtype is None}
    declared = [f"{_const(one)}{of.c_type} {_variable(one, of)}" for one, of in parameters]
    elements = [f"{_const(one)}{one.ctype} &{one.name} = _raw_{one.name}[_ind.get()];"
                for one, of in parameters if _is_element(one, of)]  # fmt: skip
    lines = [
        *(f"typedef {c_type} {letter};" for letter, c_type in sorted(letters.items())),
        kernel.preamble,
        f'extern "C" __global__ void {kernel.name}({", ".join([*declared, f"{indexer} _ind"])}) {{',
        f"  {loop_prep};",
        "  #pragma unroll 1",
        "  CUPY_FOR(i, _ind.size()) {",
        "    _ind.set(i);",
        *(f"    {element}" for element in elements),
        f"    {kernel.operation};",
        "  }",
        f"  {after_loop};",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _is_element(parameter: Any, of: ElementType) -> bool:
    """Whether the operation names one element of an array, and not the array or a number."""
    return of.axes is not None and not parameter.raw


def _const(parameter: Any) -> str:
    return "const " if parameter.is_const else ""


def _variable(parameter: Any, of: ElementType) -> str:
    return f"_raw_{parameter.name}" if _is_element(parameter, of) else str(parameter.name)
