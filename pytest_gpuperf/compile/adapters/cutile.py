"""Kernels of cuTile, compiled by its own ``export_kernel``: their machine code, and what each argument becomes.

A kernel and its ``KernelSignature`` are read by what they have, as cuda-tile 1.5 to 1.7 make them.  What the parameters
are is its documented calling convention ("Compilation and Export"): an array is its address, its shape and its strides,
a constant is none, and the order is that of the Python function.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

from pytest_gpuperf.compile.adapters.handed import C_TYPES, FunctionArgument, Handed, library, unsupported
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.machine_code.cubin import read_cubin

_MANGLED = "_Kt"
"""What cuTile puts between a function's name and its signature in a symbol."""


def read_cutile(kernel: Any, signature: Any, architectures: Sequence[str], name: str = "") -> Handed:
    """The ``kernel`` as cuTile compiles it for each architecture.

    Raises ``UnsupportedKernel`` for what it cannot compile or nobody else can launch, and ``BadCubin``.
    """
    export = getattr(sys.modules.get(type(signature).__module__.rpartition(".")[0]), "export_kernel", None)
    if export is None or not hasattr(signature, "parameters"):
        raise UnsupportedKernel(
            "from_cutile takes a kernel and its cuda.tile.compilation.KernelSignature, not "
            f"{type(kernel).__name__} and {type(signature).__name__}"
        )
    arguments = tuple(_argument(str(place), one) for place, one in enumerate(signature.parameters, start=1))
    cubins = {}
    for arch in architectures:
        content = io.BytesIO()
        try:
            export(kernel, [signature], content, gpu_code=arch, output_format="cubin")
        except Exception as problem:  # of a compiler that is not this package's
            raise UnsupportedKernel(f"cuTile cannot compile the kernel for {arch}: {problem}") from problem
        cubins[arch] = [content.getvalue()]
    symbol = next(iter(read_cubin(cubins[architectures[0]][0]).kernels))
    return Handed(
        cubins, "", "the cubin of cuTile", arguments, compiler=library("cutile", "cuda-tile"),
        name=name or symbol.partition(_MANGLED)[0],
    )  # fmt: skip


def _argument(place: str, constraint: Any) -> FunctionArgument:
    kind = type(constraint).__name__
    if kind == "ConstantConstraint":
        return FunctionArgument(place, constant=(constraint.value,))
    if kind == "ScalarConstraint":
        return FunctionArgument(place, ((_c_type(constraint.dtype), ""),))
    if kind != "ArrayConstraint":
        raise unsupported(f"argument {place} of the cuTile kernel is a {kind}", "cuTile")
    index = (_c_type(constraint.index_dtype), "")
    return FunctionArgument(place, ((f"{_c_type(constraint.dtype)}*", ""), *([index] * (2 * constraint.ndim))))


def _c_type(dtype: Any) -> str:
    name = str(getattr(dtype, "name", dtype)).removesuffix("_")
    return C_TYPES.get(name, name)
