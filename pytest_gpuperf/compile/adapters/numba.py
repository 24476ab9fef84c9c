"""Kernels of Numba, compiled for any architecture without a GPU: by ``numba.cuda.compile``, then by nvJitLink.

Read from a dispatcher, what ``@cuda.jit`` makes, by what it has, as numba-cuda 0.30 and Numba's own target before it
make it.  A kernel's parameters are Numba's, not those of the Python function: an array is two null pointers, its
elements, their size, its address, its shape and its strides (``_prepare_args`` in
``numba_cuda/numba/cuda/dispatcher.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_gpuperf.compile.adapters.handed import C_TYPES, FunctionArgument, Handed, library, source_of, unsupported
from pytest_gpuperf.compile.compile_errors import CompileError, UnsupportedKernel
from pytest_gpuperf.compile.nvrtc import Compiled, c_string
from pytest_gpuperf.compile.toolkit import load_bindings

_INSTALL = "pip install nvidia-nvjitlink (CUDA 12: nvidia-nvjitlink-cu12)"
_PARTS = {"complex64": "float", "complex128": "double"}
"""Numbers that are two parameters, and the type of each."""
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
    code, called = dispatcher.py_func.__code__, str(dispatcher.py_func.__name__)
    for option, why in _ONLY_NUMBA.items():
        if dispatcher.targetoptions.get(option):
            raise unsupported(f"{called} cannot be launched without Numba: {why}", "Numba")
    types, names = getattr(signature, "args", signature), code.co_varnames[: code.co_argcount]
    if not isinstance(types, Sequence) or isinstance(types, str) or len(names) != len(types):
        raise UnsupportedKernel(
            f"{called} takes {len(names)} arguments, and its signature is {signature!r}: from_numba takes a signature "
            "of Numba's types, numba.void(numba.float32[::1], numba.int32), or a tuple of them"
        )
    arguments = tuple(_argument(called, name, one) for name, one in zip(names, types, strict=True))
    made = {arch: _compiled(numba, dispatcher, tuple(types), arch) for arch in architectures}
    chosen = [dispatcher.targetoptions.get(name) or "" for name in (*_PASSED_ON, "max_registers")]
    package = "numba-cuda" if "numba_cuda" in Path(numba.__file__ or "").parts else "numba"
    return Handed(
        {arch: [each.cubin] for arch, each in made.items()}, "", f"{called}, compiled by Numba", arguments,
        compiler=library(package, package), name=called, label=tuple(map(str, types)),
        logs={arch: each.log for arch, each in made.items()}, source=f"{types} {chosen} {source_of(dispatcher)}",
    )  # fmt: skip


def _argument(function: str, name: str, declared: Any) -> FunctionArgument:
    """Type and name of each parameter that Numba makes of an argument."""
    axes = getattr(declared, "ndim", None)
    element = str(declared if axes is None else declared.dtype)
    element = "bool" if element == "boolean" else element
    if element not in C_TYPES and element not in _PARTS:
        raise unsupported(f"{function}: its argument {name} is {declared}; arrays and numbers can be given", "Numba")
    if axes is None and element in _PARTS:
        return FunctionArgument(name, tuple((_PARTS[element], f"{name}.{part}") for part in ("real", "imag")))
    if axes is None:
        return FunctionArgument(name, ((C_TYPES[element], name),))
    return FunctionArgument(name, (
        *(("void*", f"{name}.{part}") for part in ("meminfo", "parent")),
        *(("long long", f"{name}.{part}") for part in ("size", "itemsize")),
        (f"{C_TYPES.get(element, 'void')}*", name),
        *(("long long", f"{name}.{what}[{axis}]") for what in ("shape", "strides") for axis in range(axes)),
    ))  # fmt: skip


def _compiled(numba: Any, dispatcher: Any, types: tuple[Any, ...], arch: str) -> Compiled:
    """What Numba makes of the function for ``arch``, linked."""
    given, called, digits = dispatcher.targetoptions, dispatcher.py_func.__name__, arch.removeprefix("sm_")
    kind = "LTOIR" if given.get("lto") else "PTX"
    options = {name: given[name] for name in _PASSED_ON if given.get(name) is not None}
    code, _ = numba.compile(
        dispatcher.py_func, types, device=False, abi="numba", output=kind.lower(),
        cc=(int(digits[:-1]), int(digits[-1])), **options,
    )  # fmt: skip
    limit = [f"-maxrregcount={given['max_registers']}"] if given.get("max_registers") else []
    try:
        return link(code.encode() if isinstance(code, str) else bytes(code), kind, arch, called, limit)
    except CompileError as problem:
        raise unsupported(
            f"{problem}\nIf nvJitLink is older than the nvidia-nvvm that Numba compiles with: pip install -U "
            "nvidia-nvjitlink. Code that only Numba links, such as for cooperative launches, is not supported", "Numba"
        ) from problem  # fmt: skip


def link(code: bytes, kind: str, arch: str, place: str, options: Sequence[str] = ()) -> Compiled:
    """Machine code for ``arch`` of ``code``, which is ``"PTX"`` or ``"LTOIR"``; ``place`` is its name in errors.

    Raises ``CompileError`` and ``ToolchainMissing``.
    """
    library = load_bindings("nvJitLink", "version", _INSTALL)
    how = [f"-arch={arch}", "-Xptxas=-v", *(["-lto"] if kind == "LTOIR" else []), *options]
    handle = library.create(len(how), how)
    try:
        try:
            library.add_data(handle, getattr(library.InputType, kind), code, len(code), place)
            library.complete(handle)
        except library.nvJitLinkError as problem:
            log = _text(handle, library.get_error_log_size, library.get_error_log)
            raise CompileError(place, None, f"nvJitLink cannot link it for {arch}: {problem}", log) from problem
        cubin = bytearray(library.get_linked_cubin_size(handle))
        library.get_linked_cubin(handle, cubin)
        log = _text(handle, library.get_info_log_size, library.get_info_log)
    finally:
        library.destroy(handle)
    return Compiled(bytes(cubin), log=log)


def _text(handle: Any, size_of: Callable[[Any], int], get: Callable[[Any, bytearray], None]) -> str:
    log = bytearray(size_of(handle))
    if log:
        get(handle, log)
    return c_string(bytes(log))
