"""Kernel arguments: fitted to the parameters that the cubin declares, and described for the identity.

The cubin knows the size of every parameter.  A C++ (mangled) name knows the types too, so that a double
array for a ``float*`` is found before it reaches the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_gpuperf.device.errors import LaunchError
from pytest_gpuperf.evidence import KernelBinary, Parameter

POINTER_BYTES = 8
MAX_ALIGNMENT = 256
"""Bytes; what the allocators guarantee. More is chance."""

_POINTEES = {
    "float": "float32", "double": "float64", "__half": "float16", "char": "int8", "signed char": "int8",
    "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32",
    "long": "int64", "unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64", "bool": "bool",
}  # fmt: skip
_INTEGERS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}


def is_array(value: Any) -> bool:
    """Whether this is a device array (or a placeholder of one)."""
    return hasattr(value, "dtype") and hasattr(value, "strides") and not isinstance(value, np.generic)


def prepare(binary: KernelBinary, args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments in the types of their parameters.  Raises ``LaunchError`` that names kernel and argument."""
    if len(args) != len(binary.parameters):
        raise LaunchError(
            f"{binary.name} takes {len(binary.parameters)} arguments and {len(args)} were given: "
            f"it is declared with ({_signature(binary)})"
        )
    return tuple(
        _fit(binary.name, number, value, parameter)
        for number, (value, parameter) in enumerate(zip(args, binary.parameters, strict=True), start=1)
    )


def _signature(binary: KernelBinary) -> str:
    return ", ".join(parameter.type or f"{parameter.size} bytes" for parameter in binary.parameters)


def _fit(kernel: str, number: int, value: Any, parameter: Parameter) -> Any:
    where = f"{kernel}: argument {number}"
    if is_array(value):
        _check_array(where, value, parameter)
        return value
    if isinstance(value, np.generic):
        if value.dtype.itemsize != parameter.size:
            raise LaunchError(
                f"{where} is {value.dtype} of {value.dtype.itemsize} bytes; the parameter is {_declared(parameter)}"
            )
        _check_scalar_kind(where, value.dtype.kind, parameter)
        return value
    if isinstance(value, bool | int | float | complex):
        return _number(where, value, parameter)
    raise LaunchError(
        f"{where} is a {type(value).__name__}: a kernel takes device arrays, NumPy scalars and Python numbers"
    )


def _declared(parameter: Parameter) -> str:
    size = f"{parameter.size} bytes"
    return f"{parameter.type} ({size})" if parameter.type else f"of {size}"


def _check_array(where: str, value: Any, parameter: Parameter) -> None:
    if parameter.size != POINTER_BYTES:
        raise LaunchError(f"{where} is an array; the parameter is {_declared(parameter)}, not a pointer")
    if not (value.flags.c_contiguous or value.flags.f_contiguous):
        raise LaunchError(
            f"{where} is a strided view of shape {tuple(value.shape)}: a kernel sees only its first address; "
            "pass a contiguous copy, or the whole array"
        )
    if parameter.type is None:
        return
    if "*" not in parameter.type:
        raise LaunchError(f"{where} is an array; the parameter is {parameter.type}, not a pointer")
    wanted = _POINTEES.get(_pointee(parameter.type))
    if wanted is not None and np.dtype(wanted) != value.dtype and not _same_bits(wanted, value.dtype):
        raise LaunchError(f"{where} is an array of {value.dtype}; the parameter is {parameter.type}")


def _same_bits(wanted: str, given: Any) -> bool:
    """Integers of one size pass for each other: signedness is the kernel's reading."""
    expected = np.dtype(wanted)
    return expected.itemsize == given.itemsize and {expected.kind, given.kind} <= {"i", "u", "b"}


def _pointee(declared: str) -> str:
    words = re.sub(r"[*&]|\b(const|volatile|restrict|__restrict__|__restrict)\b", " ", declared).split()
    return " ".join(words)


def _check_scalar_kind(where: str, kind: str, parameter: Parameter) -> None:
    if parameter.type is None or "*" in parameter.type:
        return
    wanted = _POINTEES.get(_pointee(parameter.type))
    if wanted is not None and (np.dtype(wanted).kind == "f") != (kind == "f"):
        given = "a floating-point number" if kind == "f" else "an integer"
        raise LaunchError(f"{where} is {given}; the parameter is {parameter.type}")


def _number(where: str, value: bool | int | float | complex, parameter: Parameter) -> np.generic:
    wanted = _POINTEES.get(_pointee(parameter.type)) if parameter.type and "*" not in parameter.type else None
    if parameter.type and "*" in parameter.type:
        raise LaunchError(f"{where} is the number {value!r}; the parameter is {parameter.type}")
    if isinstance(value, complex):
        raise LaunchError(f"{where}: pass complex numbers as NumPy scalars of the type that the kernel declares")
    if wanted is not None:
        if isinstance(value, float) and np.dtype(wanted).kind != "f":
            raise LaunchError(f"{where} is {value!r}; the parameter is {parameter.type}")
        return _converted(where, value, np.dtype(wanted).type, parameter)
    kinds = (
        _FLOATS if isinstance(value, float) else _UNSIGNED if value > 2 ** (8 * parameter.size - 1) - 1 else _INTEGERS
    )
    if parameter.size not in kinds:
        raise LaunchError(f"{where} is {value!r}; the parameter is {_declared(parameter)}: pass a NumPy scalar")
    return _converted(where, value, kinds[parameter.size], parameter)


def _converted(where: str, value: bool | int | float, kind: Any, parameter: Parameter) -> np.generic:
    try:
        return kind(value)  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        raise LaunchError(f"{where} is {value!r}, which does not fit the parameter: {_declared(parameter)}") from None


def describe_argument(value: Any) -> str:
    """``float32[1024,32,32] align=256`` or ``int32=7``: what the identity keeps of an argument."""
    if not is_array(value):
        return f"{value.dtype}={value.item()}"
    shape = ",".join(str(length) for length in value.shape)
    order = "" if value.flags.c_contiguous else " order=F"
    return f"{value.dtype}[{shape}]{order}{_alignment(value)}"


def _alignment(value: Any) -> str:
    """The largest power of two up to 256 that divides the address; nothing where there is no address."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if not interface:
        return ""
    address = int(interface["data"][0])
    return f" align={min(address & -address, MAX_ALIGNMENT) if address else MAX_ALIGNMENT}"
