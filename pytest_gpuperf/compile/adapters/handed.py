"""Machine code that another compiler made of one kernel, and all that a launch without that compiler needs."""

from __future__ import annotations

import importlib.metadata
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.machine_code.binary import cubin_with, ready_made
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

OWN_ARCH = ""
"""In the place of an architecture: that of the cubin itself."""
C_TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
    "float16": "__half", "float32": "float", "float64": "double",
}  # fmt: skip
"""NumPy's names of types whose values are known to C++; others, such as ``bfloat16``, go by their size alone."""


TF32 = 11
"""``CU_TENSOR_MAP_DATA_TYPE_TFLOAT32``"""


class TensorMap(NamedTuple):
    """Encoding of a tensor descriptor, but for its array: see ``cuTensorMapEncodeTiled`` of the CUDA Driver API."""

    element: int
    """``CUtensorMapDataType``"""
    element_bytes: int
    box: tuple[int, ...]
    """Elements that are copied at once, by axis, the fastest last."""
    swizzle: int
    """``CUtensorMapSwizzle``"""
    spread_fp4: bool = False
    """Two values of fp4 lie in a byte of the array, and each has one in shared memory."""


class FunctionArgument(NamedTuple):
    """One argument of the function that the other compiler was given."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    """C++ type and name of each parameter of the machine code that it becomes."""
    constant: tuple[Any, ...] = ()
    """Its value where it was compiled in, and is no parameter."""
    tensor_map: TensorMap | None = None
    """Of a tensor descriptor, which becomes a ``CUtensorMap``, its shape and its strides."""


class Handed(NamedTuple):
    """A kernel as its compiler hands it over."""

    cubins: Mapping[str, Sequence[bytes]]
    """By architecture, or ``OWN_ARCH`` for one alone; of several for an architecture one has the kernel."""
    symbol: str
    """Of the kernel; empty for the only one of its cubin."""
    place: str
    """What errors call it."""
    arguments: tuple[FunctionArgument, ...] | None = None
    """In the order of its function, constants included; None where the machine code alone says what it takes."""
    scratch_pointers: int = 0
    """Null pointers to be given behind the arguments."""
    threads: int = 0
    """Per block; 0 where the machine code or the launch says it."""
    shared_bytes: int = 0
    """Dynamic shared memory per block."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Blocks that one block of the given grid becomes, a cluster."""
    cooperative: bool = False
    pdl: bool = False
    """Whether it is launched cooperatively, and as a programmatic dependent launch."""
    compiler: str = ""
    """``triton 3.6.0``"""
    config: str = ""
    """What an autotuner chose, as text for the record."""
    name: str = ""
    """What people call it; empty for its symbol."""
    source: str = ""
    """Text that changes with what it was made from; empty if there is none."""
    label: tuple[str, ...] = ()
    """Tells kernels of one name apart."""
    logs: Mapping[str, str] = {}
    """The assembler's, by architecture, where it is known."""


def unsupported(why: str, library: str) -> UnsupportedKernel:
    """The error of a kernel that its own library alone can compile or launch, with the remedy."""
    return UnsupportedKernel(
        f"{why}. Give gpuperf a function that launches it with {library}; it is then timed as a callable"
    )


def binary_for(handed: Handed, arch: str) -> KernelBinary:
    """The kernel for one of the architectures of its cubins, its parameters named and typed as its arguments are.

    Raises ``UnsupportedKernel`` where those are others than the machine code's, and as ``ready_made``.
    """
    cubins = handed.cubins[arch]
    place = f"{handed.place} for {arch}" if arch else handed.place
    symbol = handed.symbol or _only_kernel(cubins[0], place)
    made = ready_made(
        cubin_with(cubins, symbol, place), symbol, place=place, name=handed.name, source=handed.source,
        compiler=handed.compiler, log=handed.logs.get(arch, ""), arch=arch,
    )  # fmt: skip
    parameters = made.parameters
    if handed.arguments is not None:
        known = [parameter for argument in handed.arguments for parameter in argument.parameters]
        known += [("void*", "scratch memory")] * handed.scratch_pointers
        if len(known) != len(parameters):
            why = f"its machine code takes {len(parameters)} parameters, but its arguments fill {len(known)}"
            raise unsupported(f"{made.name}: {why}", handed.compiler.partition(" ")[0])
        parameters = tuple(
            Parameter(offset=one.offset, size=one.size, type=c_type, name=name)
            for one, (c_type, name) in zip(parameters, known, strict=True)
        )
    return msgspec.structs.replace(made, config=handed.config, parameters=parameters)


def _only_kernel(cubin: bytes, place: str) -> str:
    symbols = sorted(read_cubin(cubin).kernels)
    if len(symbols) == 1:
        return symbols[0]
    raise UnsupportedKernel(
        f"{place}: its cubin has {len(symbols)} kernels: name one of them, symbol={symbols[0] if symbols else ''!r}; "
        f"it has {', '.join(symbols) or 'none'}"
    )


def source_of(jitted: Any) -> str:
    """What Numba or Triton compiles: a function as it is written, functions that it calls, and numbers that it uses.

    Without what lies in their own packages, and so the same for each of their versions.
    """
    function = getattr(jitted, "py_func", None) or jitted.fn
    used, names = inspect.getclosurevars(function), function.__code__.co_names
    known = {**used.globals, **used.nonlocals}
    for module in filter(inspect.ismodule, used.globals.values()):
        known.update((name, vars(module)[name]) for name in names if name in vars(module))
    values = {name: getattr(one, "value", one) for name, one in sorted(known.items())}
    numbers = {name: one for name, one in values.items() if isinstance(one, int | float | complex | str | tuple)}
    called = [one for one in known.values() if type(one) is type(jitted) and one is not jitted]
    own = [source_of(one) for one in called if one.__module__.partition(".")[0] not in ("numba", "triton")]
    try:
        return "\n".join([inspect.getsource(function), str(numbers), *own])
    except OSError:  # it is in no file
        return str((function.__code__.co_code, function.__code__.co_consts, numbers, own))


def library(name: str, package: str) -> str:
    """``cutile 1.7.0``: a library called ``name`` with the version of its ``package``, where that is installed."""
    try:
        return f"{name} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return name
