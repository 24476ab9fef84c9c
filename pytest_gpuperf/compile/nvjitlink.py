"""Running nvJitLink: PTX or LTO IR of another compiler in, machine code out.  Driverless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytest_gpuperf.compile.compile_errors import CompileError
from pytest_gpuperf.compile.nvrtc import Compiled
from pytest_gpuperf.compile.toolkit import load_bindings

INSTALL = "pip install nvidia-nvjitlink (CUDA 12: nvidia-nvjitlink-cu12)"
_VERBOSE = "-Xptxas=-v"
"""Makes the log tell spills; changes no machine code."""


def link(code: bytes, kind: str, arch: str, place: str, options: Sequence[str] = ()) -> Compiled:
    """Machine code for ``arch`` of ``code``, which is ``"PTX"`` or ``"LTOIR"``; ``place`` is its name in errors.

    Raises ``CompileError`` and ``ToolchainMissing``.
    """
    library = load_bindings("nvJitLink", "version", INSTALL)
    how = [f"-arch={arch}", _VERBOSE, *(["-lto"] if kind == "LTOIR" else []), *options]
    handle = library.create(len(how), how)
    try:
        try:
            library.add_data(handle, getattr(library.InputType, kind), code, len(code), place)
            library.complete(handle)
        except library.nvJitLinkError as problem:
            log = _text(handle, library.get_error_log_size, library.get_error_log)
            raise CompileError(place, None, f"nvJitLink refuses it for {arch}: {problem}", log) from problem
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
    return bytes(log).split(b"\0", 1)[0].decode(errors="replace")
