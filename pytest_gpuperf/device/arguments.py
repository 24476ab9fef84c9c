"""Kernel arguments: fitted to the parameters that the cubin declares, and described for the identity.

The cubin knows the size of every parameter, a C++ (mangled) name the types too.  The PTX of an ``extern "C"`` kernel
tells numbers of either kind and, from sm_100 on, pointers, but not what they point to.  Where there is nothing but
sizes, a Python int becomes an integer and a Python float a floating-point number of the parameter's size.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from pytest_gpuperf.device.device_errors import LaunchError
from pytest_gpuperf.device.parameter_types import Declared, declared
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

POINTER_BYTES = 8
MAX_ALIGNMENT = 256
"""Bytes; what CUDA's allocators guarantee.  More is chance."""
_ON_HOST, _TO_DEVICE = "a NumPy array in host memory", "copy it to the GPU with gpu.array(...)"
_BY_VALUE = frozenset("?bhilqBHILQefdFD")
"""NumPy scalars that CuPy passes by themselves; others it passes as arrays of one element."""


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


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """A parameter of many bytes that is passed by value: what another library forms, or an opaque one of the user's."""

    content: bytes
    """All of it, or what follows the address of ``array``."""
    entry: str
    """Its entry in the identity, without addresses."""
    array: Any = None
    """The array that it begins with the address of, and follows when buffers are moved."""
    kept: Any = None
    """What its content points to, kept alive."""

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """What the loaded kernel is given."""
        facts = array_facts(self.array)
        start = b"" if facts is None else (facts.address or 0).to_bytes(POINTER_BYTES, "little")
        return np.array(np.void(start + self.content))


def array_behind(argument: Any) -> Any:
    """The array that an argument leads to; the argument itself unless it is a ``Structure``."""
    return argument.array if isinstance(argument, Structure) else argument


class _Site(NamedTuple):
    """Place of an argument in the launch, for messages and checks."""

    where: str
    parameter: Parameter
    declared: Declared

    @property
    def wanted(self) -> str:
        size = f"{self.parameter.size} bytes"
        return f"{self.parameter.type} ({size})" if self.parameter.type else f"a parameter of {size}"

    def refuse(self, given: str, advice: str = "") -> LaunchError:
        joint = ", " if advice.startswith(("which ", "whose ")) else advice and ": "
        return LaunchError(f"{self.where} is {given}, but the kernel declares {self.wanted}{joint}{advice}")


def opaque(value: Any, parameter: Parameter) -> Any:
    """A ``Structure`` of bytes, or of a NumPy array of exactly the parameter's size; any other argument as it is."""
    by_value = isinstance(value, np.ndarray) and value.nbytes == parameter.size > POINTER_BYTES
    if by_value and value.dtype.kind != "V":
        value = value.tobytes()
    return Structure(value, f"opaque[{len(value)}]") if isinstance(value, bytes) else value


def prepare(binary: KernelBinary, args: Sequence[Any], on_host: Callable[[Any], bool]) -> tuple[Argument, ...]:
    """Fit the arguments to the kernel's parameters.

    ``on_host`` says of a NumPy array whether the GPU cannot see it.  Raises ``LaunchError`` that names the
    kernel, the argument by its name or position and what both sides say.
    """
    if len(args) != len(binary.parameters):
        wanted = ", ".join(parameter.type or f"{parameter.size} bytes" for parameter in binary.parameters)
        raise LaunchError(
            f"{binary.name} takes {len(binary.parameters)} arguments ({wanted}), "
            f"and {len(args)} were given ({', '.join(map(_brief, args))})"
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
    if isinstance(value, Structure):
        return _structure(site, value, on_host)
    facts = array_facts(value)
    if facts is not None:
        if isinstance(value, np.ndarray) and on_host(value):
            raise site.refuse(_ON_HOST, _TO_DEVICE)
        return _array(site, value, facts)
    if isinstance(value, int | float) and not isinstance(value, np.generic):  # bool is an int
        value = _number(site, value)
    elif isinstance(value, tuple | Mapping):
        value = _vector(site, value)
    if isinstance(value, np.generic):
        return _scalar(site, value)
    if value is None or hasattr(value, "ptr"):
        return _address(site, value)
    raise site.refuse(_brief(value), "pass device arrays, NumPy scalars or Python numbers")


def _structure(site: _Site, value: Structure, on_host: Callable[[Any], bool]) -> Argument:
    if isinstance(value.array, np.ndarray) and on_host(value.array):
        raise site.refuse(_ON_HOST, _TO_DEVICE)
    content = value.value
    if site.parameter.size != content.nbytes or site.declared.is_pointer:
        raise site.refuse(f"{value.entry.split()[0]} ({content.nbytes} bytes)")
    facts = array_facts(value.array)
    return Argument(content, f"{value.entry}{_alignment(facts.address) if facts is not None else ''}")


def _array(site: _Site, value: Any, facts: ArrayFacts) -> Argument:
    given = f"an array of {facts.dtype}"
    if site.parameter.size != POINTER_BYTES or site.declared.is_pointer is False:
        raise site.refuse(given, "which is no pointer")
    if site.declared.is_pointer and not site.declared.holds(facts.dtype):
        raise site.refuse(given)
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


def _address(site: _Site, value: Any) -> Argument:
    """``None``, CuPy's ``array.data`` or a texture object: eight bytes that nothing more is known about."""
    element = site.declared.element
    takes_one = site.declared.is_pointer is not False or (element is not None and element.kind in "iu")
    if site.parameter.size != POINTER_BYTES or not takes_one:
        raise site.refuse("None" if value is None else "an address", "which is no pointer")
    address = 0 if value is None else int(value.ptr)
    return Argument(np.uint64(address), "null" if address == 0 else f"address{_alignment(address)}")


def _scalar(site: _Site, value: np.generic) -> Argument:
    if value.dtype.itemsize != site.parameter.size:
        raise site.refuse(f"{value.dtype} of {value.dtype.itemsize} bytes")
    if site.declared.is_pointer and value.dtype.kind not in "iu":
        raise site.refuse(f"{value.dtype}", "pass an array")
    if site.declared.is_pointer:
        return Argument(value, f"address{_alignment(int(value.item()))}")
    element = site.declared.element
    if element is not None and site.declared.lanes == 1 and not site.declared.holds(value.dtype):
        raise site.refuse(f"{value.dtype}")
    if value.dtype.char not in _BY_VALUE:
        return Argument(np.array(value), f"{value.dtype.name}=0x{value.tobytes().hex()}")
    return Argument(value, f"{value.dtype}={value.item()}")


def _number(site: _Site, value: int | float) -> np.generic:
    """A Python number in the type of its parameter."""
    if site.declared.is_pointer:
        raise site.refuse(f"the number {value!r}", "pass an array, None or array.data")
    dtype = site.declared.element if site.declared.lanes == 1 else None
    if dtype is not None and dtype.kind != "f" and isinstance(value, float):
        raise site.refuse(f"the floating-point number {value!r}")
    if site.declared.is_pointer is None or not site.declared.sign_known:
        dtype = _by_size(value, site.parameter.size)
    if dtype is None:
        raise site.refuse(f"the number {value!r}", "pass a NumPy scalar of the type that the kernel means")
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise site.refuse(f"{value!r}", f"which {dtype} cannot hold")
    if dtype.kind == "f" and math.inf > abs(value) > float(np.finfo(dtype).max):
        raise site.refuse(f"{value!r}", f"which {dtype} cannot hold")
    return dtype.type(value)  # type: ignore[no-any-return]


def _vector(site: _Site, value: tuple[Any, ...] | Mapping[str, Any]) -> np.generic:
    """A tuple or a dict as CUDA's ``float4`` or another of its vectors, whose layout is known."""
    declared = site.declared
    if declared.is_pointer is not False or declared.element is None or declared.lanes == 1:
        raise site.refuse(
            f"a {type(value).__name__}", "whose layout the machine code does not tell: pass a structured NumPy scalar, "
            'np.array((1.0, 2), dtype=np.dtype([("a", "f4"), ("n", "i4")], align=True))[()]',
        )  # fmt: skip
    names = "xyzw"[: declared.lanes]
    given = value if isinstance(value, Mapping) else dict(zip("xyzw", value, strict=False))
    if set(given) != set(names) or len(value) != declared.lanes:
        raise site.refuse(f"{value!r}", f"which takes {declared.lanes} numbers: {', '.join(names)}")
    layout = np.dtype([(name, declared.element) for name in names])
    try:
        return cast(np.generic, np.array(tuple(given[name] for name in names), dtype=layout)[()])
    except (TypeError, ValueError, OverflowError) as problem:
        raise site.refuse(f"{value!r}", str(problem)) from None


def _by_size(value: int | float, size: int) -> np.dtype[Any] | None:
    """The type that a number of ``size`` bytes most likely has; None if there is no such type."""
    if isinstance(value, bool) and size == 1:
        return np.dtype("bool")
    if isinstance(value, float):
        return np.dtype(f"float{8 * size}") if size in (4, 8) else None
    if size not in (1, 2, 4, 8):
        return None
    return np.dtype(f"{'u' if value >> (8 * size - 1) > 0 else ''}int{8 * size}")


def _brief(value: Any) -> str:
    facts = array_facts(value)
    if facts is not None:
        return f"{facts.dtype} array"
    return f"{value.dtype}" if isinstance(value, np.generic) else type(value).__name__
