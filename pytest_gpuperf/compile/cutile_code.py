"""Kernels of cuTile, compiled by its own ``export_kernel``: their machine code, and what each argument becomes.

A kernel and its ``KernelSignature`` are read by what they have, as cuda-tile 1.5 to 1.7 make them; the library is never
imported here.  What the parameters are is its documented calling convention ("Compilation and Export"): an array is its
address, its shape and its strides, a constant is none, and the order is that of the Python function.
"""

from __future__ import annotations

import importlib.metadata
import io
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import UnsupportedDslKernel
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.ready_made import ready_made
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

_C_TYPES = {
    "bool_": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long", "float16": "__half",
    "float32": "float", "float64": "double",
}  # fmt: skip
"""cuTile's names of types whose values are known to C++; others, such as ``bfloat16``, go by their size alone."""
_MANGLED = "_Kt"
"""What cuTile puts between a function's name and its signature in a symbol."""
_REMEDY = "Give gpuperf a function that calls cuda.tile.launch; its time is then compared without pairs"


class TileArray(NamedTuple):
    """An array: its address, its shape and its strides."""

    dtype: str
    index_type: str
    """Type of its shape and strides."""
    axes: int


class TileScalar(NamedTuple):
    """A number."""

    dtype: str


class TileConstant(NamedTuple):
    """A value that was compiled in, and is no parameter."""

    value: Any


TileArgument = TileArray | TileScalar | TileConstant


class CutileCode(NamedTuple):
    """All that a launch without cuTile needs."""

    binaries: dict[str, KernelBinary]
    """By architecture."""
    arguments: tuple[TileArgument, ...]
    """In the order of the Python function."""


def compile_cutile(kernel: Any, signature: Any, architectures: Sequence[str], name: str = "") -> CutileCode:
    """Have cuTile compile ``kernel`` for each architecture.

    Raises ``UnsupportedDslKernel`` for what it cannot compile or nobody else can launch, and as ``ready_made``.
    """
    export = getattr(sys.modules.get(type(signature).__module__.rpartition(".")[0]), "export_kernel", None)
    if export is None or not hasattr(signature, "parameters"):
        raise UnsupportedDslKernel(
            "from_cutile takes a kernel and its cuda.tile.compilation.KernelSignature, not "
            f"{type(kernel).__name__} and {type(signature).__name__}"
        )
    arguments = tuple(_argument(place, one) for place, one in enumerate(signature.parameters, start=1))
    binaries = {}
    for arch in architectures:
        cubin = _exported(export, kernel, signature, arch)
        binaries[arch] = _binary(cubin, arguments, name)
    return CutileCode(binaries, arguments)


def _exported(export: Any, kernel: Any, signature: Any, arch: str) -> bytes:
    content = io.BytesIO()
    try:
        export(kernel, [signature], content, gpu_code=arch, output_format="cubin")
    except Exception as problem:  # of a compiler that is not this package's
        raise UnsupportedDslKernel(f"cuTile cannot compile the kernel for {arch}: {problem}") from problem
    return content.getvalue()


def _binary(cubin: bytes, arguments: Sequence[TileArgument], name: str) -> KernelBinary:
    symbol = next(iter(read_cubin(cubin).kernels))
    compiler = f"cutile {_version()}".strip()
    called = name or symbol.partition(_MANGLED)[0]
    binary = ready_made(cubin, symbol, place="the cubin of cuTile", name=called, compiler=compiler)
    types = [c_type for argument in arguments for c_type in parameter_types(argument)]
    if len(types) != len(binary.parameters):
        raise UnsupportedDslKernel(
            f"{called}: its machine code takes {len(binary.parameters)} parameters, and its signature makes "
            f"{len(types)}. {_REMEDY}"
        )
    typed = (
        Parameter(offset=parameter.offset, size=parameter.size, type=c_type)
        for parameter, c_type in zip(binary.parameters, types, strict=True)
    )
    return msgspec.structs.replace(binary, parameters=tuple(typed))


def parameter_types(argument: TileArgument) -> tuple[str, ...]:
    """Types of the parameters that the argument becomes, as C++ would declare them."""
    if isinstance(argument, TileConstant):
        return ()
    element = _C_TYPES.get(argument.dtype, argument.dtype)
    if isinstance(argument, TileScalar):
        return (element,)
    index = _C_TYPES[argument.index_type]
    return (f"{element}*", *([index] * (2 * argument.axes)))


def _argument(place: int, constraint: Any) -> TileArgument:
    kind = type(constraint).__name__
    if kind == "ConstantConstraint":
        return TileConstant(constraint.value)
    if kind == "ScalarConstraint":
        return TileScalar(_type(constraint.dtype))
    if kind != "ArrayConstraint":
        raise UnsupportedDslKernel(f"argument {place} of the cuTile kernel is a {kind}: {_REMEDY}")
    return TileArray(_type(constraint.dtype), _type(constraint.index_dtype), constraint.ndim)


def _type(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))


def _version() -> str:
    try:
        return importlib.metadata.version("cuda-tile")
    except importlib.metadata.PackageNotFoundError:
        return ""
