"""Kernels of Numba, compiled for any architecture without a GPU: by ``numba.cuda.compile``, then by nvJitLink.

Read from a dispatcher, what ``@cuda.jit`` makes, by what it has, as numba-cuda 0.30 and Numba's own target before it
make it; Numba is never imported here.  A kernel's parameters are Numba's, not those of the Python function: an array is
two null pointers, its elements, their size, its address, its shape and its strides (``_prepare_args`` in
``numba_cuda/numba/cuda/dispatcher.py``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import CompileError, UnsupportedNumbaKernel
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.ready_made import ready_made
from pytest_gpuperf.compile.nvjitlink import link
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.model.evidence import KernelBinary, Parameter

_C_TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
    "float16": "__half", "float32": "float", "float64": "double",
}  # fmt: skip
_PARTS = {"complex64": "float32", "complex128": "float64"}
"""Numbers that are two parameters, and the type of each."""
_REMEDY = "Give gpuperf a function that launches it with Numba; its time is then compared without pairs"
_PASSED_ON = ("fastmath", "opt", "lineinfo", "launch_bounds")
"""Options of ``@cuda.jit`` that ``numba.cuda.compile`` takes too, where they are set."""
_ONLY_NUMBA = {
    "device": "it is a device function",
    "debug": "debug=True makes Numba check for exceptions after each launch",
    "link": "it is linked with files",
    "extensions": "its arguments go through extensions",
}


class NumbaArgument(NamedTuple):
    """One argument of the Python function."""

    name: str
    type: str
    """NumPy's name of its type, of an array that of its elements."""
    axes: int | None = None
    """Of an array; None for a number."""
    layout: str = ""
    """``C``, ``F`` or ``A`` for any."""

    @property
    def label(self) -> str:
        """Tells kernels for other types apart: ``float32[2d,C]``."""
        return self.type if self.axes is None else f"{self.type}[{self.axes}d,{self.layout}]"

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Type and name of each parameter that Numba makes of it."""
        if self.axes is None:
            for part in ("real", "imag") if self.type in _PARTS else ("",):
                yield _C_TYPES[_PARTS.get(self.type, self.type)], f"{self.name}{part and '.'}{part}"
            return
        yield from (("void*", f"{self.name}.{part}") for part in ("meminfo", "parent"))
        yield from (("long long", f"{self.name}.{part}") for part in ("size", "itemsize"))
        yield f"{_C_TYPES.get(self.type, 'void')}*", self.name
        yield from (("long long", f"{self.name}.shape[{axis}]") for axis in range(self.axes))
        yield from (("long long", f"{self.name}.strides[{axis}]") for axis in range(self.axes))


class NumbaFunction(NamedTuple):
    """All that a compilation needs."""

    name: str
    function: Any
    """The Python function."""
    signature: Any
    options: Mapping[str, Any]
    """Of ``@cuda.jit``."""
    arguments: tuple[NumbaArgument, ...]
    numba: Any
    """The module ``numba.cuda`` that made it."""
    compiler: str
    """``numba-cuda 0.30.4``"""


def read_numba(dispatcher: Any, signature: Any) -> NumbaFunction:
    """Read what ``@cuda.jit`` made, for arguments of these types.  Raises ``UnsupportedNumbaKernel``."""
    function, options = (getattr(dispatcher, name, None) for name in ("py_func", "targetoptions"))
    numba = sys.modules.get("numba.cuda")
    if function is None or not isinstance(options, Mapping) or numba is None:
        raise UnsupportedNumbaKernel(
            f"from_numba takes what @numba.cuda.jit makes of a function, not {type(dispatcher).__name__}"
        )
    name = str(function.__name__)
    for option, why in _ONLY_NUMBA.items():
        if options.get(option):
            raise UnsupportedNumbaKernel(f"{name} cannot be launched without Numba: {why}. {_REMEDY}")
    types = getattr(signature, "args", signature)
    if not isinstance(types, Sequence) or isinstance(types, str):
        raise UnsupportedNumbaKernel(
            f"{name}: its signature is {signature!r}: from_numba takes a signature of Numba's types, "
            "numba.void(numba.float32[::1], numba.int32), or a tuple of them"
        )
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if len(names) != len(types):
        raise UnsupportedNumbaKernel(f"{name} takes {len(names)} arguments, and its signature has {len(types)}")
    arguments = tuple(_argument(name, *one) for one in zip(names, types, strict=True))
    return NumbaFunction(name, function, tuple(types), options, arguments, numba, _version(numba))


def numba_binary(function: NumbaFunction, arch: str) -> KernelBinary:
    """Its machine code for one architecture, with the evidence of it, and its parameters by their names.

    Numba optimises when it links where ``lto`` is set, which it is by default; then so is it here.
    Raises ``UnsupportedNumbaKernel``, ``UnknownArchitecture`` and ``ToolchainMissing``; what Numba says of the function
    itself comes through.
    """
    by_lto = bool(function.options.get("lto"))
    code = _compile(function, arch, "ltoir" if by_lto else "ptx")
    most = function.options.get("max_registers")
    try:
        made = link(code, "LTOIR" if by_lto else "PTX", arch, function.name,
                    [f"-maxrregcount={most}"] if most else [])  # fmt: skip
    except CompileError as problem:
        raise UnsupportedNumbaKernel(
            f"{problem}\nIf nvJitLink is older than the nvidia-nvvm that Numba compiles with: pip install -U "
            f"nvidia-nvjitlink. What Numba itself links, for a cooperative launch or files of CUDA C++, is not linked "
            f"here: {_REMEDY[0].lower()}{_REMEDY[1:]}"
        ) from problem
    return _with_parameters(function, made)


def numba_ptx(function: NumbaFunction, arch: str) -> str:
    """The PTX that Numba makes of it for ``arch``."""
    return _compile(function, arch, "ptx").decode()


def _compile(function: NumbaFunction, arch: str, output: str) -> bytes:
    digits = arch.removeprefix("sm_")
    if not digits.isdecimal():
        raise UnsupportedNumbaKernel(
            f"{function.name}: {arch} is a variant, and Numba compiles for plain architectures here: "
            f'from_numba(..., arch="sm_{re.sub("[^0-9]", "", digits)}")'
        )
    options = {name: function.options[name] for name in _PASSED_ON if function.options.get(name) is not None}
    code, _ = function.numba.compile(
        function.function, function.signature, device=False, abi="numba", output=output,
        cc=(int(digits[:-1]), int(digits[-1])), **options,
    )  # fmt: skip
    return code.encode() if isinstance(code, str) else bytes(code)


def _with_parameters(function: NumbaFunction, made: Compiled) -> KernelBinary:
    (symbol,) = read_cubin(made.cubin).kernels
    binary = ready_made(made.cubin, symbol, place=f"{function.name}, compiled by Numba", name=function.name,
                        compiler=function.compiler, log=made.log)  # fmt: skip
    told = [parameter for argument in function.arguments for parameter in argument.parameters()]
    if len(told) != len(binary.parameters):
        raise UnsupportedNumbaKernel(
            f"{function.name}: its machine code takes {len(binary.parameters)} parameters, and its arguments make "
            f"{len(told)}. {_REMEDY}"
        )
    named = (
        Parameter(offset=one.offset, size=one.size, type=c_type, name=name)
        for one, (c_type, name) in zip(binary.parameters, told, strict=True)
    )
    return msgspec.structs.replace(binary, parameters=tuple(named))


def _argument(function: str, name: str, declared: Any) -> NumbaArgument:
    """An argument by Numba's type of it."""
    axes = getattr(declared, "ndim", None)
    element = str(declared if axes is None else declared.dtype)
    element = "bool" if element == "boolean" else element
    known = element in _C_TYPES or element in _PARTS
    if not known or (axes is not None and not hasattr(declared, "layout")):
        raise UnsupportedNumbaKernel(
            f"{function} cannot be launched without Numba: its argument {name} is {declared}; arrays and numbers can "
            f"be given. {_REMEDY}"
        )
    return NumbaArgument(name, element, axes, getattr(declared, "layout", ""))


def _version(numba: Any) -> str:
    """``numba-cuda 0.30.4``, or ``numba 0.60.0`` for the target that Numba itself had."""
    package = "numba-cuda" if "numba_cuda" in Path(numba.__file__).parts else "numba"
    return f"{package} {metadata.version(package)}"
