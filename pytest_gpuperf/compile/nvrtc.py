"""Running NVRTC: source text in; machine code, PTX and the compiler's log out.  Driverless.

By ``cuda.bindings.nvrtc``: ``cuda.core`` takes no raw option strings, and asks the driver for its version.

A source that NVRTC refuses is compiled again with stubs of the host's headers (``compile/include``): what device code
takes from those of the C and C++ library, and nothing from the others; then with names that nvcc declares by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pytest_gpuperf.compile.compile_errors import (
    ERROR_LINE,
    BadOption,
    CompileError,
    CompileProblem,
    ToolchainMissing,
    UnknownArchitecture,
    UnknownKernel,
)
from pytest_gpuperf.compile.remedies import MISTAKE, remedy
from pytest_gpuperf.compile.source import NVRTC, VERBOSE_ASSEMBLER, KernelSource
from pytest_gpuperf.compile.toolkit import nvrtc_bindings, toolkit_folders
from pytest_gpuperf.model.architectures import STATIC_SHARED_BYTES

_SHARED = re.compile(r"Compiling entry function '([^']+)'[^\n]*(?:\n[^\n]*){1,3}\bUsed [^\n]*?(\d+) bytes smem")

HOST_HEADERS = Path(__file__).parent / "include" / "host"
"""Searched last: headers that are installed are read instead."""
_LIBRARIES = Path(__file__).parent / "include" / "libraries"
"""Searched before CUDA's own: those of its libraries are for the host alone."""
NAMES_OF_THE_HOST = HOST_HEADERS / "gpuperf_names_of_the_host.h"


class Compiled(NamedTuple):
    """Output of a compiler; for a cubin of others nothing but that."""

    cubin: bytes
    ptx: str = ""
    log: str = ""
    """Warnings and the assembler's report."""
    lowered: str | None = None
    """The symbol that the name expression names."""


def compile_cubin(source: KernelSource, arch: str) -> Compiled:
    """Compile to machine code for ``arch`` (``sm_90``).

    Raises ``CompileError``, ``BadOption``, ``UnknownArchitecture``, ``ToolchainMissing``.
    """
    nvrtc = nvrtc_bindings()
    for stubs in ((), (HOST_HEADERS,), (HOST_HEADERS, NAMES_OF_THE_HOST)):
        try:
            return _compiled(nvrtc, source, arch, stubs)
        except CompileError as problem:
            refused = problem
    raise refused


def _compiled(nvrtc: ModuleType, source: KernelSource, arch: str, stubs: Sequence[Path]) -> Compiled:
    handle = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source.text.encode(), source.file.encode(), 0, [], []))
    lowered, expression = None, (source.expression or "").encode()
    try:
        if expression:
            _checked(nvrtc, nvrtc.nvrtcAddNameExpression(handle, expression))
        log = _compile(nvrtc, handle, source, arch, stubs)
        if expression:
            lowered = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(handle, expression)).decode()
        cubin = _fetch(nvrtc, handle, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        ptx = c_string(_fetch(nvrtc, handle, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))
        return Compiled(cubin, ptx, log, lowered)
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _compile(nvrtc: ModuleType, handle: Any, source: KernelSource, arch: str, stubs: Sequence[Path]) -> str:
    last = [*([_LIBRARIES] if stubs else []), *toolkit_folders(), *stubs[:1]]
    folders = (f"--include-path={folder}" for folder in last)
    before = (one for header in stubs[1:] for one in (f"--pre-include={header}", "--disable-warnings"))
    # NVRTC 13 has a cache of its own where there is a driver, which keeps no log, the only source of spills
    uncached = ["--no-cache"] if nvrtc.nvrtcVersion()[1] >= 13 else []
    given = [f"--gpu-architecture={arch}", *source.all_options, *folders, *before, VERBOSE_ASSEMBLER, *uncached]
    options = list(map(os.fsencode, given))
    (status,) = nvrtc.nvrtcCompileProgram(handle, len(options), options)
    log = c_string(_fetch(nvrtc, handle, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog))
    results = nvrtc.nvrtcResult
    if status == results.NVRTC_SUCCESS:
        return log
    if status == results.NVRTC_ERROR_INVALID_OPTION:
        raise _option_problem(nvrtc, log, arch, source)
    if status == results.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        raise ToolchainMissing(f"NVRTC cannot load its own libnvrtc-builtins: reinstall it ({log.strip()})")
    log = log.replace(source.file, source.place)
    first = ERROR_LINE.search(log)
    raise refusal(source, log, first[0].strip() if first else _assembler_message(log, status.name))


def _option_problem(nvrtc: ModuleType, log: str, arch: str, source: KernelSource) -> CompileProblem:
    message = (log.strip() or "invalid option").splitlines()[0]
    if "gpu-architecture" in message:
        known = [f"sm_{number}" for number in _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs())]
        return UnknownArchitecture(arch, known, " to NVRTC {}.{}".format(*nvrtc.nvrtcVersion()[1:]))
    return BadOption(f"{source.place}: the compiler rejects an option: {message}\n{remedy(message, NVRTC)}".rstrip())


def refusal(source: KernelSource, log: str, message: str) -> CompileProblem:
    """What a compiler's ``log`` says first of a file and a line, with its remedy; ``message`` where it names none."""
    mistake, advice = MISTAKE.search(log), remedy(log, source.compiler)
    if mistake is None:
        return CompileError(source.place, None, message, log, advice)
    file, line, what = mistake["file"], int(mistake["line"] or mistake["other"]), mistake["what"]
    if file == "__nv_name_map":  # of the name expression
        hint = (
            f"the compiler rejects the expression: {what}. To do: write it with its namespaces and all arguments "
            "that have no default, as in ns::copy<float, 4>"
        )
        return UnknownKernel(str(source.expression), source.place, None, hint)
    return CompileError(file, line, what, log, advice)


def _assembler_message(log: str, status: str) -> str:
    """ptxas fails without a word where a kernel needs more static shared memory than there is; its figures tell."""
    for kernel, shared_bytes in _SHARED.findall(log):
        if int(shared_bytes) > STATIC_SHARED_BYTES:
            return (
                f"kernel {kernel} declares {shared_bytes} bytes of shared memory; at most {STATIC_SHARED_BYTES} "
                f"can be static, more has to be dynamic (extern __shared__)"
            )
    return f"compilation failed ({status})"


def _fetch(nvrtc: ModuleType, handle: Any, size_of: Any, get: Any) -> bytes:
    """The log, cubin or PTX of a program: ask for its size, then have NVRTC fill a bytes object of that size.

    Never one of a single byte: Python shares those, so NVRTC would write into every ``b" "`` of the process.
    """
    size: int = _checked(nvrtc, size_of(handle))
    content = bytes(max(size, 2))
    _checked(nvrtc, get(handle, content))
    return content[:size]


def c_string(content: bytes) -> str:
    """A text that ends at its first zero."""
    return content.split(b"\0", 1)[0].decode(errors="replace")


def _checked(nvrtc: ModuleType, answer: Sequence[Any]) -> Any:
    """The payload of an NVRTC call; any status but success is a broken toolchain, since the input was accepted."""
    status, *payload = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ToolchainMissing(f"NVRTC failed unexpectedly ({status.name}): reinstall it or use another version")
    return payload[0] if payload else None
