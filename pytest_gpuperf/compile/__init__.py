"""Static evidence from source: compiler, cubin, disassembly.  Needs no GPU, no driver, no CuPy, no pytest.

``compile_for`` makes binaries with their evidence; ``occupancy`` says how many warps a launch keeps
resident; ``ptx`` and ``ptx_instructions`` count virtual instructions; ``read_cubin`` checks a cubin of unknown
origin, ``binary_of`` makes a kernel of a stored one, ``ready_made`` and ``triton_binary`` of one that others have
compiled.  Everything raised on purpose is a ``CompileProblem``.  Names are resolved on first use, so that
importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_gpuperf.compile.cache import CompileCache
    from pytest_gpuperf.compile.compile_errors import (
        BadCubin,
        BadOption,
        CompileCacheWarning,
        CompileError,
        CompileProblem,
        ToolchainMissing,
        UnknownArchitecture,
        UnknownKernel,
        UnsupportedTritonKernel,
    )
    from pytest_gpuperf.compile.compiler import as_recorded, compile_for, compile_kernel, compile_together, ptx
    from pytest_gpuperf.compile.cubin.cubin_reader import Cubin, CubinKernel, read_cubin
    from pytest_gpuperf.compile.cubin.occupancy import occupancy, occupancy_of
    from pytest_gpuperf.compile.cubin.ready_made import binary_of, ready_made
    from pytest_gpuperf.compile.ptx_text import ptx_instructions, ptx_of
    from pytest_gpuperf.compile.sm_limits import limits_of
    from pytest_gpuperf.compile.source import KernelSource
    from pytest_gpuperf.compile.toolkit import disassembler
    from pytest_gpuperf.compile.triton_code import TritonArgument, TritonCode, read_triton, triton_binary
    from pytest_gpuperf.compile.version import toolchain

_HOMES = {
    "cache": ("CompileCache",),
    "compiler": ("as_recorded", "compile_for", "compile_kernel", "compile_together", "ptx"),
    "cubin.cubin_reader": ("Cubin", "CubinKernel", "read_cubin"),
    "compile_errors": (
        "BadCubin",
        "BadOption",
        "CompileCacheWarning",
        "CompileError",
        "CompileProblem",
        "ToolchainMissing",
        "UnknownArchitecture",
        "UnknownKernel",
        "UnsupportedTritonKernel",
    ),
    "cubin.occupancy": ("occupancy", "occupancy_of"),
    "ptx_text": ("ptx_instructions", "ptx_of"),
    "sm_limits": ("limits_of",),
    "source": ("KernelSource",),
    "cubin.ready_made": ("binary_of", "ready_made"),
    "toolkit": ("disassembler",),
    "triton_code": ("TritonArgument", "TritonCode", "read_triton", "triton_binary"),
    "version": ("toolchain",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BadCubin",
    "BadOption",
    "CompileCache",
    "CompileCacheWarning",
    "CompileError",
    "CompileProblem",
    "Cubin",
    "CubinKernel",
    "KernelSource",
    "ToolchainMissing",
    "TritonArgument",
    "TritonCode",
    "UnknownArchitecture",
    "UnknownKernel",
    "UnsupportedTritonKernel",
    "as_recorded",
    "binary_of",
    "compile_for",
    "compile_kernel",
    "compile_together",
    "disassembler",
    "limits_of",
    "occupancy",
    "occupancy_of",
    "ptx",
    "ptx_instructions",
    "ptx_of",
    "read_cubin",
    "read_triton",
    "ready_made",
    "toolchain",
    "triton_binary",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
