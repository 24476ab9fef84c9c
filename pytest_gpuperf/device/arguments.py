"""Kernel arguments: fitted to the parameters that the cubin declares, described for the identity, and formed again.

An array becomes a pointer, a number takes the type of its parameter, bytes and structures are passed by value.  The
cubin knows the size of every parameter, a C++ (mangled) name the types too, PTX some.  Where there are only sizes, and
for structures and template parameters, an int becomes an integer and a float a floating-point number of that size.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

POINTER_BYTES = 8
MAX_ALIGNMENT = 256
"""Bytes; what CUDA's allocators guarantee.  More is chance."""
Source = int | np.generic | None
"""Of a recorded argument: a position among the launch's arguments, a number, or no address."""

_BF16 = "__nv_bfloat16"
_BYTES = {"char": 1, "short": 2, "int": 4, "long": 8, "longlong": 8, "__half": 2, _BF16: 2, "float": 4, "double": 8}
_INTEGERS = {1: "bool int8 uint8", 2: "int16 uint16", 4: "int32 uint32", 8: "int64 uint64"}
_FLOATS = {4: "float32", 8: "float64"}
_ELEMENT = re.compile(
    r"(?:(unsigned |u)?(?:signed )?(char|short|int|long ?long|long)|(__half|__nv_bfloat16|float|double))"
    r"((?<!half)[1-4](?:_\d\da)?)?"
)
"""A number's type, or a vector's: ``float``, ``unsigned int``, ``uint4``, ``double4_16a``."""
_QUALIFIER = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict)\b|[*&]")
_IN_PTX = re.compile(r"(8|16|32|64)-bit integer( or pointer)?")
"""In addition to ``float``, ``double`` and ``pointer``: PTX does not tell ``int`` from ``unsigned int``."""
_RECORDED_ARRAY = re.compile(r"(?P<kind>\w+\[[\d,]*\](?: order=F)?)(?: align=\d+)?")
"""An array by type, shape and order, or an opaque argument."""
_RECORDED_NUMBER = re.compile(r"(bool|u?int(?:8|16|32|64)|b?float\w+|complex(?:64|128))=(\S+)")


class Argument(NamedTuple):
    """One argument, ready to be launched with."""

    given: Any
    """As the test gave it; ``Opaque`` for bytes and the like."""
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
    name: str
    """Of the type; NumPy may lack it."""

    @property
    def entry(self) -> str:
        """Its entry in the identity."""
        shape = ",".join(map(str, self.shape))
        return f"{self.name}[{shape}]{' order=F' if self.order == 'F' else ''}{_alignment(self.address)}"


class Opaque(NamedTuple):
    """Bytes that are passed by value, as another library or the user formed them."""

    content: bytes
    entry: str
    """Its entry in the identity, without addresses."""
    kept: Any = None
    """What its content points to, kept alive."""


class _Spec(NamedTuple):
    """A parameter, as far as it matters for its argument."""

    where: str
    parameter: Parameter
    is_pointer: bool | None
    """None if it is not known."""
    types: tuple[np.dtype[Any], ...]
    """What the value, or what the pointer points to, may be; empty if anything is accepted."""

    def takes(self, given: np.dtype[Any]) -> bool:
        """Integers of one size pass for each other, 16-bit types for bfloat16 too; records and complex for anything.

        Types that NumPy lacks (bfloat16, fp8) pass for any of their size.
        """
        foreign = given.isbuiltin == 2 or (given.kind == "V" and given.fields is None)
        if not self.types or not (foreign or given.kind in "biuf"):
            return True
        own = self.types[0]
        same_kind = foreign or own.itemsize == 2 or (given.kind == "f") == (own.kind == "f")
        return given.itemsize == own.itemsize and same_kind

    def refuse(self, given: str, advice: str = "") -> LaunchError:
        size = f"{self.parameter.size} bytes"
        wanted = f"{self.parameter.type} ({size})" if self.parameter.type else f"a parameter of {size}"
        return LaunchError(f"{self.where} is {given}, but the kernel declares {wanted}{advice and ': '}{advice}")


def prepare(binary: KernelBinary, args: Sequence[Any], on_host: Callable[[Any], bool]) -> tuple[Argument, ...]:
    """Fit the arguments to the kernel's parameters.

    ``on_host`` says of a NumPy array whether the GPU cannot see it.  Raises ``LaunchError`` that names the
    kernel, the argument by its name or position and what both sides say.
    """
    wanted = [parameter.type or f"{parameter.size} bytes" for parameter in binary.parameters]
    if len(args) != len(wanted):
        raise LaunchError(
            f"{binary.name} takes {len(wanted)} arguments ({', '.join(wanted)}), and {len(args)} were given"
        )
    fitted = []
    for number, (value, parameter) in enumerate(zip(args, binary.parameters, strict=True), start=1):
        where = f"{binary.name}: argument {parameter.name or number}"
        spec = _Spec(where, parameter, *_declared(parameter.type))
        given = _opaque(spec, value)
        fitted.append(Argument(given, *_fit(spec, given, on_host)))
    return tuple(fitted)


def array_facts(value: Any) -> ArrayFacts | None:
    """Facts of a CuPy, NumPy or placeholder array, a tensor of PyTorch, or of any ``__cuda_array_interface__``."""
    if hasattr(value, "data_ptr") and hasattr(value, "element_size"):  # also of types that the interface lacks
        return _tensor_facts(value) if value.is_cuda else None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        own, shape = getattr(value, "dtype", None), tuple(interface["shape"])
        dtype = own if isinstance(own, np.dtype) else np.dtype(interface["typestr"])
        strides = interface.get("strides")
        address = int(interface["data"][0])
    elif hasattr(value, "strides") and hasattr(value, "dtype") and not isinstance(value, np.generic):
        dtype, shape, strides, address = value.dtype, tuple(value.shape), tuple(value.strides), None
    else:
        return None
    return _facts(dtype, dtype.name, shape, strides, address)


def _tensor_facts(tensor: Any) -> ArrayFacts:
    name, size = str(tensor.dtype).removeprefix("torch."), tensor.element_size()
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(f"V{size}")
    strides = tuple(size * stride for stride in tensor.stride())
    return _facts(dtype, name, tuple(tensor.shape), strides, int(tensor.data_ptr()))


def _facts(
    dtype: np.dtype[Any], name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, address: int | None
) -> ArrayFacts:
    packed = (math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape)))
    cell = np.empty(1, f"V{dtype.itemsize}")  # NumPy makes no view of some types of ml_dtypes
    view = np.lib.stride_tricks.as_strided(cell, shape, packed if strides is None else strides)
    order = "C" if view.flags.c_contiguous else "F" if view.flags.f_contiguous else ""
    return ArrayFacts(dtype, shape, order, address, view.strides, name)


def recorded_arguments(recorded: Sequence[str], launched: Sequence[str]) -> tuple[Source, ...]:
    """The arguments that the entries of a record name, for ``Launch.values_for``: its own numbers, the launch's arrays.

    Arrays are matched in their order with those ``launched`` of the same type, shape and order, of which there have
    to be as many.  Raises ``LaunchError`` that names the argument that cannot be formed again.
    """
    then, now = _arrays(recorded), _arrays(launched)
    for kind, places in then.items():
        if len(now[kind]) != len(places):
            raise LaunchError(f"the record names {len(places)} arrays {kind}, and this launch has {len(now[kind])}")
    found = {old: new for kind in then for old, new in zip(then[kind], now[kind], strict=True)}
    return tuple(found[place] if place in found else _recorded(place, entry) for place, entry in enumerate(recorded))


def _arrays(entries: Sequence[str]) -> dict[str, list[int]]:
    """Positions of arrays by all that their entries say but the alignment."""
    found: dict[str, list[int]] = defaultdict(list)
    for position, entry in enumerate(entries):
        if match := _RECORDED_ARRAY.fullmatch(entry):
            found[match["kind"]].append(position)
    return found


def _recorded(place: int, entry: str) -> np.generic | None:
    """A number of the record, or no address."""
    if entry == "null":
        return None
    try:
        if match := _RECORDED_NUMBER.fullmatch(entry):
            value: Any = match[2] == "True" if match[1] == "bool" else match[2]
            return np.dtype(match[1]).type(value)  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError):
        pass
    raise LaunchError(f"argument {place + 1} was {entry!r}, which cannot be made again from the record")


def _declared(name: str | None) -> tuple[bool | None, tuple[np.dtype[Any], ...]]:
    """Whether ``float const*``, ``unsigned int``, ``float4*``, ``32-bit integer``... is a pointer, and its types."""
    if name is None:
        return None, ()
    if found := _IN_PTX.fullmatch(name):
        return None if found[2] else False, _types(_INTEGERS[int(found[1]) // 8])
    plain, stars = " ".join(_QUALIFIER.sub(" ", name).split()), name.count("*")
    if name == "pointer" or "(" in name or "[" in name or stars > 1:  # of PTX; to an array; to pointers
        return True, ()
    if plain == "bool":
        return stars == 1, _types("bool uint8")
    found = _ELEMENT.fullmatch(plain)
    if found is None or ((found[4] or found[3] == _BF16) and not stars):
        return stars == 1, ()
    base = (found[2] or found[3]).replace(" ", "")
    return stars == 1, _types(f"{'float' if found[3] else 'uint' if found[1] else 'int'}{8 * _BYTES[base]}")


def _types(names: str) -> tuple[np.dtype[Any], ...]:
    return tuple(map(np.dtype, names.split()))


def _opaque(spec: _Spec, value: Any) -> Any:
    """``Opaque`` of a structure, of bytes, and of a NumPy array of a vector's or structure's size; another as it is."""
    is_array, is_vector = isinstance(value, np.ndarray), spec.is_pointer is False and not spec.types
    if isinstance(value, np.void) or (is_array and value.dtype.kind == "V" and value.size == 1):
        return Opaque(value.tobytes(), f"{value.dtype.name}=0x{value.tobytes().hex()}")
    if is_array and value.nbytes == spec.parameter.size and (is_vector or value.nbytes > POINTER_BYTES):
        value = value.tobytes()
    return Opaque(value, f"opaque[{len(value)}]") if isinstance(value, bytes) else value


def _fit(spec: _Spec, value: Any, on_host: Callable[[Any], bool]) -> tuple[Any, str]:
    """The value that the loaded kernel is given, and its entry."""
    if isinstance(value, Opaque):
        if len(value.content) != spec.parameter.size:
            raise spec.refuse(f"{len(value.content)} bytes")
        return np.array(np.void(value.content)), value.entry
    facts = array_facts(value)
    if facts is not None:
        return _array(spec, value, facts, isinstance(value, np.ndarray) and on_host(value))
    if isinstance(value, int | float) and not isinstance(value, np.generic):  # bool is an int
        value = _number(spec, value)
    if isinstance(value, np.generic):
        fits = value.dtype.kind in "iu" if spec.is_pointer else spec.takes(value.dtype)
        if value.dtype.itemsize != spec.parameter.size or not fits:
            raise spec.refuse(f"{value.dtype}")
        given = value.view(f"u{value.dtype.itemsize}") if value.dtype.isbuiltin == 2 else value
        return given, f"address{_alignment(int(value.item()))}" if spec.is_pointer else f"{value.dtype}={value.item()}"
    if (value is None or hasattr(value, "ptr")) and spec.parameter.size == POINTER_BYTES:
        address = 0 if value is None else int(value.ptr)
        return np.uint64(address), f"address{_alignment(address)}" if address else "null"
    raise spec.refuse(type(value).__name__, "pass a device array, a number or a (structured) NumPy scalar")


def _array(spec: _Spec, value: Any, facts: ArrayFacts, on_host: bool) -> tuple[Any, str]:
    may_be_pointer = spec.is_pointer is not False and spec.parameter.size == POINTER_BYTES
    if not may_be_pointer:
        raise spec.refuse(f"a NumPy array of {value.nbytes} bytes" if on_host else f"an array of {facts.name}")
    if on_host:
        raise spec.refuse("a NumPy array in host memory", "copy it to the GPU with gpu.array(...)")
    if spec.is_pointer and not spec.takes(facts.dtype):
        reinterpreted = f'pass array.view("{spec.types[0]}") if its bytes are meant'
        raise spec.refuse(f"an array of {facts.name}", reinterpreted)
    if not facts.order:
        raise LaunchError(
            f"{spec.where} is a strided view of shape {facts.shape}, but a kernel gets only its first address: "
            "pass the whole array, a contiguous copy, or array.data for the bare address"
        )
    return value if facts.address is None else np.uint64(facts.address), facts.entry


def _alignment(address: int | None) -> str:
    """The largest power of two up to 256 that divides the address; nothing where there is no address."""
    if address is None:
        return ""
    return f" align={min(address & -address, MAX_ALIGNMENT) if address else MAX_ALIGNMENT}"


def _number(spec: _Spec, value: int | float) -> np.generic:
    """A Python number in the type of its parameter: the first that holds it, where the size alone is known."""
    if spec.is_pointer:
        raise spec.refuse(f"the number {value!r}", "pass an array, None or array.data")
    by_size = _FLOATS if isinstance(value, float) else _INTEGERS
    for dtype in spec.types or _types(by_size.get(spec.parameter.size, "")):
        if _holds(dtype, value):
            return dtype.type(value)  # type: ignore[no-any-return]
    raise spec.refuse(f"the number {value!r}", "pass a number that its type holds, or a NumPy scalar of that type")


def _holds(dtype: np.dtype[Any], value: int | float) -> bool:
    if dtype.kind == "f":
        return np.can_cast(np.min_scalar_type(float(value)), dtype)
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return isinstance(value, int) and least <= value <= most
