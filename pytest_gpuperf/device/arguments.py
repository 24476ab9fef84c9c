"""Kernel arguments: fitted to the parameters that the cubin declares, and described for the identity.

An array becomes a pointer, a number takes the type of its parameter, bytes and structures are passed by value.  The
cubin knows the size of every parameter, a C++ (mangled) name the types too, PTX some.  Where there are only sizes, a
Python int becomes an integer and a Python float a floating-point number of the parameter's size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.parameter_types import Declared, declared
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

POINTER_BYTES = 8
MAX_ALIGNMENT = 256
"""Bytes; what CUDA's allocators guarantee.  More is chance."""


class Argument(NamedTuple):
    """One argument, ready to be launched with."""

    value: Any
    """Value that the loaded kernel is given."""
    entry: str
    """Entry in the identity: ``float32[1024,32] align=256``, ``int32=7``."""


class ArrayFacts(NamedTuple):
    """Properties of an array that matter for a launch."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    """``C``, ``F`` for the transposed order, or nothing if elements are missing or out of order."""
    address: int | None
    strides: tuple[int, ...]
    """Bytes."""

    @property
    def entry(self) -> str:
        """Its entry in the identity."""
        shape = ",".join(str(length) for length in self.shape)
        return f"{self.dtype}[{shape}]{' order=F' if self.order == 'F' else ''}{_alignment(self.address)}"


class Opaque(NamedTuple):
    """Bytes that are passed by value, as another library or the user formed them."""

    content: bytes
    entry: str
    """Its entry in the identity, without addresses."""
    kept: Any = None
    """What its content points to, kept alive."""


class _Site(NamedTuple):
    """Place of an argument in the launch, for messages and checks."""

    where: str
    parameter: Parameter
    declared: Declared

    @property
    def takes_pointer(self) -> bool:
        return self.parameter.size == POINTER_BYTES and self.declared.is_pointer is not False

    def refuse(self, given: str, advice: str = "") -> LaunchError:
        size = f"{self.parameter.size} bytes"
        wanted = f"{self.parameter.type} ({size})" if self.parameter.type else f"a parameter of {size}"
        return LaunchError(f"{self.where} is {given}, but the kernel declares {wanted}{advice and ': '}{advice}")


def opaque(value: Any, parameter: Parameter) -> Any:
    """``Opaque`` of bytes, or of a NumPy array of exactly the parameter's size; any other argument as it is."""
    by_value = isinstance(value, np.ndarray) and value.nbytes == parameter.size > POINTER_BYTES
    if by_value and value.dtype.kind != "V":
        value = value.tobytes()
    return Opaque(value, f"opaque[{len(value)}]") if isinstance(value, bytes) else value


def prepare(binary: KernelBinary, args: Sequence[Any], on_host: Callable[[Any], bool]) -> tuple[Argument, ...]:
    """Fit the arguments to the kernel's parameters.

    ``on_host`` says of a NumPy array whether the GPU cannot see it.  Raises ``LaunchError`` that names the
    kernel, the argument by its name or position and what both sides say.
    """
    if len(args) != len(binary.parameters):
        wanted = ", ".join(parameter.type or f"{parameter.size} bytes" for parameter in binary.parameters)
        raise LaunchError(
            f"{binary.name} takes {len(binary.parameters)} arguments ({wanted}), and {len(args)} were given"
        )
    fitted = []
    for number, (value, parameter) in enumerate(zip(args, binary.parameters, strict=True), start=1):
        site = _Site(f"{binary.name}: argument {parameter.name or number}", parameter, declared(parameter.type))
        fitted.append(_fit(site, value, on_host))
    return tuple(fitted)


def array_facts(value: Any) -> ArrayFacts | None:
    """Facts of a CuPy, NumPy or placeholder array, or of anything with ``__cuda_array_interface__`` (PyTorch)."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        strides = interface.get("strides")
        address = int(interface["data"][0])
    elif hasattr(value, "strides") and hasattr(value, "dtype") and not isinstance(value, np.generic):
        dtype, shape, strides, address = value.dtype, tuple(value.shape), tuple(value.strides), None
    else:
        return None
    packed = (math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape)))
    view = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, packed if strides is None else strides)
    order = "C" if view.flags.c_contiguous else "F" if view.flags.f_contiguous else ""
    return ArrayFacts(dtype, shape, order, address, view.strides)


def _fit(site: _Site, value: Any, on_host: Callable[[Any], bool]) -> Argument:
    if isinstance(value, np.ndarray) and value.dtype.kind == "V" and value.size == 1:
        value = value.reshape(-1)[0]  # a structure, as CuPy's users pass it
    if isinstance(value, Opaque):
        if len(value.content) != site.parameter.size:
            raise site.refuse(f"{len(value.content)} bytes")
        return Argument(np.array(np.void(value.content)), value.entry)
    facts = array_facts(value)
    if facts is not None:
        return _array(site, value, facts, isinstance(value, np.ndarray) and on_host(value))
    if isinstance(value, int | float) and not isinstance(value, np.generic):  # bool is an int
        value = _number(site, value)
    if isinstance(value, np.generic):
        return _scalar(site, value)
    if (value is None or hasattr(value, "ptr")) and site.parameter.size == POINTER_BYTES:
        address = 0 if value is None else int(value.ptr)
        return Argument(np.uint64(address), f"address{_alignment(address)}" if address else "null")
    raise site.refuse(type(value).__name__, "pass device arrays, NumPy scalars or Python numbers")


def _array(site: _Site, value: Any, facts: ArrayFacts, on_host: bool) -> Argument:
    if on_host:
        raise site.refuse("a NumPy array in host memory", "copy it to the GPU with gpu.array(...)")
    if not site.takes_pointer or (site.declared.is_pointer and not site.declared.takes(facts.dtype)):
        raise site.refuse(f"an array of {facts.dtype}")
    if not facts.order:
        raise LaunchError(
            f"{site.where} is a strided view of shape {facts.shape}, and a kernel gets nothing but its first address: "
            "pass the whole array, a contiguous copy, or array.data for the bare address"
        )
    return Argument(value if facts.address is None else np.uint64(facts.address), facts.entry)


def _alignment(address: int | None) -> str:
    """The largest power of two up to 256 that divides the address; nothing where there is no address."""
    if address is None:
        return ""
    return f" align={min(address & -address, MAX_ALIGNMENT) if address else MAX_ALIGNMENT}"


def _scalar(site: _Site, value: np.generic) -> Argument:
    is_address = bool(site.declared.is_pointer) and value.dtype.kind in "iu"
    fits = is_address or (not site.declared.is_pointer and site.declared.takes(value.dtype))
    if value.dtype.itemsize != site.parameter.size or not fits:
        raise site.refuse(f"{value.dtype}")
    if is_address:
        return Argument(value, f"address{_alignment(int(value.item()))}")
    if value.dtype.kind not in "biufc":  # CuPy passes others as arrays of one element
        return Argument(np.array(value), f"{value.dtype.name}=0x{value.tobytes().hex()}")
    return Argument(value, f"{value.dtype}={value.item()}")


def _number(site: _Site, value: int | float) -> np.generic:
    """A Python number in the type of its parameter: the first that holds it, where the size alone is known."""
    if site.declared.is_pointer:
        raise site.refuse(f"the number {value!r}", "pass an array, None or array.data")
    for dtype in site.declared.types or _of_size(value, site.parameter.size):
        if _holds(dtype, value):
            return dtype.type(value)  # type: ignore[no-any-return]
    raise site.refuse(f"the number {value!r}", "pass a number that its type holds, or a NumPy scalar of that type")


def _holds(dtype: np.dtype[Any], value: int | float) -> bool:
    if dtype.kind in "iu":
        return isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    if dtype.kind == "b" or (isinstance(value, float) and not math.isfinite(value)):
        return True
    return abs(value) <= float(np.finfo(dtype).max)


def _of_size(value: int | float, size: int) -> tuple[np.dtype[Any], ...]:
    """The types that a number of ``size`` bytes most likely has."""
    if isinstance(value, bool) and size == 1:
        return (np.dtype("bool"),)
    if isinstance(value, float):
        return (np.dtype(f"float{8 * size}"),) if size in (4, 8) else ()
    return (np.dtype(f"int{8 * size}"), np.dtype(f"uint{8 * size}")) if size in (1, 2, 4, 8) else ()
