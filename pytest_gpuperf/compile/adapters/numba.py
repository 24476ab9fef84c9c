"""Kernels of Numba, compiled for any architecture without a GPU: by ``numba.cuda.compile``, then by nvJitLink.

Read from a dispatcher, what ``@cuda.jit`` makes, by what it has, as numba-cuda 0.30 and Numba's own target before it
make it.  A kernel's parameters are Numba's, not those of the Python function: an array is two null pointers, its
elements, their size, its address, its shape and its strides (``_prepare_args`` in
``numba_cuda/numba/cuda/dispatcher.py``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pytest_gpuperf.compile.adapters.handed import C_TYPES, FunctionArgument, Handed, library
from pytest_gpuperf.compile.compile_errors import CompileError, UnsupportedKernel
from pytest_gpuperf.compile.nvjitlink import link
from pytest_gpuperf.compile.nvrtc import Compiled

_PARTS = {"complex64": "float", "complex128": "double"}
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


def read_numba(dispatcher: Any, signature: Any, architectures: Sequence[str]) -> Handed:
    """What ``@cuda.jit`` made, compiled for arguments of these types and each architecture.

    Numba links where ``lto`` is set, which it is by default; then so is it here.
    Raises ``UnsupportedKernel``, ``UnknownArchitecture`` and ``ToolchainMissing``; what Numba says of the function
    itself comes through.
    """
    numba = sys.modules.get("numba.cuda")
    if numba is None or not all(hasattr(dispatcher, name) for name in ("py_func", "targetoptions")):
        raise UnsupportedKernel(
            f"from_numba takes what @numba.cuda.jit makes of a function, not {type(dispatcher).__name__}"
        )
    function, called = dispatcher.py_func, str(dispatcher.py_func.__name__)
    for option, why in _ONLY_NUMBA.items():
        if dispatcher.targetoptions.get(option):
            raise UnsupportedKernel(f"{called} cannot be launched without Numba: {why}. {_REMEDY}")
    types = getattr(signature, "args", signature)
    if not isinstance(types, Sequence) or isinstance(types, str):
        raise UnsupportedKernel(
            f"{called}: its signature is {signature!r}: from_numba takes a signature of Numba's types, "
            "numba.void(numba.float32[::1], numba.int32), or a tuple of them"
        )
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if len(names) != len(types):
        raise UnsupportedKernel(f"{called} takes {len(names)} arguments, and its signature has {len(types)}")
    declared = [_declared(called, *pair) for pair in zip(names, types, strict=True)]
    compiled = partial(_compiled, numba, dispatcher, tuple(types))
    made = {arch: _linked(compiled, dispatcher, arch) for arch in architectures}
    package = "numba-cuda" if "numba_cuda" in Path(numba.__file__ or "").parts else "numba"
    return Handed(
        cubins={arch: [each.cubin] for arch, each in made.items()},
        symbol="",
        place=f"{called}, compiled by Numba",
        arguments=tuple(
            FunctionArgument(name, tuple(_parameters(name, *of))) for name, of in zip(names, declared, strict=True)
        ),
        compiler=library(package, package),
        name=called,
        label=tuple(of if axes is None else f"{of}[{axes}d,{layout}]" for of, axes, layout in declared),
        logs={arch: each.log for arch, each in made.items()},
    )


def _declared(function: str, name: str, declared: Any) -> tuple[str, int | None, str]:
    """NumPy's name of an argument's type, or of its elements; an array's axes, else None, and its layout."""
    axes = getattr(declared, "ndim", None)
    element = str(declared if axes is None else declared.dtype)
    element = "bool" if element == "boolean" else element
    known = element in C_TYPES or element in _PARTS
    if not known or (axes is not None and not hasattr(declared, "layout")):
        raise UnsupportedKernel(
            f"{function} cannot be launched without Numba: its argument {name} is {declared}; arrays and numbers can "
            f"be given. {_REMEDY}"
        )
    return element, axes, getattr(declared, "layout", "")


def _parameters(name: str, element: str, axes: int | None, _layout: str) -> Iterator[tuple[str, str]]:
    """Type and name of each parameter that Numba makes of an argument."""
    if axes is None:
        part = _PARTS.get(element)
        yield from [(C_TYPES[element], name)] if part is None else [(part, f"{name}.real"), (part, f"{name}.imag")]
        return
    yield from (("void*", f"{name}.{part}") for part in ("meminfo", "parent"))
    yield from (("long long", f"{name}.{part}") for part in ("size", "itemsize"))
    yield f"{C_TYPES.get(element, 'void')}*", name
    yield from (("long long", f"{name}.{what}[{axis}]") for what in ("shape", "strides") for axis in range(axes))


def _linked(compiled: Callable[[str, str], bytes], dispatcher: Any, arch: str) -> Compiled:
    kind = "LTOIR" if dispatcher.targetoptions.get("lto") else "PTX"
    most = dispatcher.targetoptions.get("max_registers")
    options = [f"-maxrregcount={most}"] if most else []
    try:
        return link(compiled(arch, kind.lower()), kind, arch, dispatcher.py_func.__name__, options)
    except CompileError as problem:
        raise UnsupportedKernel(
            f"{problem}\nIf nvJitLink is older than the nvidia-nvvm that Numba compiles with: pip install -U "
            f"nvidia-nvjitlink. What Numba itself links, for a cooperative launch or files of CUDA C++, is not linked "
            f"here: {_REMEDY[0].lower()}{_REMEDY[1:]}"
        ) from problem


def _compiled(numba: Any, dispatcher: Any, types: tuple[Any, ...], arch: str, output: str) -> bytes:
    """What Numba makes of the function for ``arch``: ``ptx`` or ``ltoir``."""
    digits = arch.removeprefix("sm_")
    if not digits.isdecimal():
        raise UnsupportedKernel(
            f"{dispatcher.py_func.__name__}: {arch} is a variant, and Numba compiles for plain architectures here: "
            f'from_numba(..., arch="sm_{re.sub("[^0-9]", "", digits)}")'
        )
    given = dispatcher.targetoptions
    options = {name: given[name] for name in _PASSED_ON if given.get(name) is not None}
    code, _ = numba.compile(
        dispatcher.py_func, types, device=False, abi="numba", output=output, cc=(int(digits[:-1]), int(digits[-1])),
        **options,
    )  # fmt: skip
    return code.encode() if isinstance(code, str) else bytes(code)
