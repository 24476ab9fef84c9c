"""Running NVRTC: source text in; machine code, PTX and the compiler's log out.  Driverless.

Why ``cuda.bindings.nvrtc`` and not ``cuda.core.Program``: users write raw option strings, which
``ProgramOptions`` does not take, and ``Program.compile("ptx")`` asks the driver for its version.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from pytest_gpuperf.compile import host_headers
from pytest_gpuperf.compile.compile_errors import (
    BadOption,
    CompileError,
    CompileProblem,
    ToolchainMissing,
    UnknownArchitecture,
    UnknownKernel,
)
from pytest_gpuperf.compile.nvrtc_options import VERBOSE_ASSEMBLER
from pytest_gpuperf.compile.ptxas_log import read_log
from pytest_gpuperf.compile.remedies import (
    UNOPENED,
    Mistake,
    assembler_remedy,
    expression_hint,
    macro_remedy,
    nvrtc_remedy,
)
from pytest_gpuperf.compile.toolkit import nvrtc_bindings, toolkit_folders

_MISTAKE = re.compile(
    r"^(?P<file>[^\n]+?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #?[\w-]+)?: (?P<what>[^\n]*)", re.M
)
_ERROR_LINE = re.compile(r"^[^\n]*\b(?:error|fatal)\b[^\n]*", re.M)
_EXPRESSIONS = "__nv_name_map"
"""File that NVRTC names for a mistake in a name expression."""

NVRTC, NVCC = "nvrtc", "nvcc"
"""Names of the compilers."""

STATIC_SHARED_BYTES = 48 * 1024
"""The most that a kernel may declare, on every architecture (CUDA C++ Programming Guide)."""


class Program(NamedTuple):
    """Everything that a compilation depends on."""

    text: str
    file: str
    """Its name for the compiler."""
    place: str
    """Its name in errors."""
    options: tuple[str, ...]
    expression: str | None = None
    stand_ins: tuple[str, ...] = ()
    """Headers of the host that it names and no folder holds: given to NVRTC if it is refused without them."""
    compiler: str = NVRTC
    """What compiles it."""
    environment: tuple[str, ...] = ()
    """``NAME=value`` of the variables that this compiler heeds."""


class Compiled(NamedTuple):
    """Output of NVRTC; for a cubin of others nothing but that."""

    cubin: bytes
    ptx: str = ""
    log: str = ""
    """Warnings and the assembler's report."""
    lowered: str | None = None
    """The symbol that the name expression stands for."""


def compile_cubin(program: Program, arch: str) -> Compiled:
    """Compile to machine code for ``arch`` (``sm_90``).

    Raises ``CompileError``, ``BadOption``, ``UnknownArchitecture``, ``ToolchainMissing``.
    """
    nvrtc = nvrtc_bindings()
    with _compiled(nvrtc, program, arch) as (handle, log):
        lowered = None
        if program.expression is not None:
            expression = program.expression.encode()
            lowered = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(handle, expression)).decode()
        cubin = _fetch(nvrtc, handle, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        return Compiled(cubin, _ptx(nvrtc, handle), log, lowered)


def compile_ptx(program: Program, arch: str) -> str:
    """PTX for the virtual architecture of ``arch``.  Raises as above."""
    nvrtc = nvrtc_bindings()
    with _compiled(nvrtc, program, arch.replace("sm_", "compute_")) as (handle, _):
        return _ptx(nvrtc, handle)


@contextlib.contextmanager
def _compiled(nvrtc: ModuleType, program: Program, arch: str) -> Iterator[tuple[Any, str]]:
    """Handle and log of a program, compiled as it is or, if it lacks headers or names of the host, with those."""
    given: frozenset[str] = frozenset()
    while True:
        with _created(nvrtc, program, given) as handle:
            try:
                log = _compile(nvrtc, handle, program, arch, given)
            except CompileError as problem:
                more = given | _lacking(program, problem.log)
                if more == given:
                    raise
                given = more
                continue
            yield handle, log
            return


def _lacking(program: Program, log: str) -> frozenset[str]:
    """Stand-ins that a refused program needs, by the compiler's log."""
    unopened = {one or other for one, other in UNOPENED.findall(log)}
    headers = program.stand_ins if unopened & set(program.stand_ins) else ()
    return frozenset([*headers, *host_headers.first_of_all(log)])


@contextlib.contextmanager
def _created(nvrtc: ModuleType, program: Program, given: frozenset[str] = frozenset()) -> Iterator[Any]:
    names = sorted(host_headers.HEADERS.keys() & given)
    texts = [host_headers.HEADERS[name].encode() for name in names]
    included = [name.encode() for name in names]
    text, file = program.text.encode(), program.file.encode()
    handle = _checked(nvrtc, nvrtc.nvrtcCreateProgram(text, file, len(names), texts, included))
    try:
        if program.expression is not None:
            _checked(nvrtc, nvrtc.nvrtcAddNameExpression(handle, program.expression.encode()))
        yield handle
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _compile(nvrtc: ModuleType, handle: Any, program: Program, arch: str, given: frozenset[str]) -> str:
    options = [f"--gpu-architecture={arch}".encode(), *(option.encode() for option in program.options)]
    options += [f"--pre-include={name}".encode() for name in host_headers.PRE_INCLUDED if name in given]
    if arch.startswith("sm_"):
        options += [VERBOSE_ASSEMBLER.encode(), *_uncached()]
    (status,) = nvrtc.nvrtcCompileProgram(handle, len(options), options)
    log = _text(_fetch(nvrtc, handle, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog))
    results = nvrtc.nvrtcResult
    if status == results.NVRTC_SUCCESS:
        return log
    if status == results.NVRTC_ERROR_INVALID_OPTION:
        raise _option_problem(log, arch, program)
    if status == results.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        raise ToolchainMissing(f"NVRTC cannot load its own libnvrtc-builtins: reinstall it ({log.strip()})")
    raise _compile_error(program, log, status.name, given)


@functools.cache
def _uncached() -> tuple[bytes, ...]:
    """The option that keeps NVRTC from its own cache, where it knows one.

    NVRTC 13 keeps what it compiled where there is a driver.  What comes out of that cache comes without the
    assembler's log, and the log is the only source of spills.
    """
    nvrtc = nvrtc_bindings()
    option = b"--no-cache"
    with _created(nvrtc, Program("", "probe.cu", "probe.cu", ())) as handle:
        (status,) = nvrtc.nvrtcCompileProgram(handle, 1, [option])
    return (option,) if status == nvrtc.nvrtcResult.NVRTC_SUCCESS else ()


def _option_problem(log: str, arch: str, program: Program) -> CompileProblem:
    words = log.strip().splitlines()[0] if log.strip() else "invalid option"
    if "gpu-architecture" in words:
        return UnknownArchitecture(arch, _supported(), " to this NVRTC")
    return BadOption(f"{program.place}: the compiler does not take one of its options: {words}")


def _supported() -> list[str]:
    """Architectures that the NVRTC in use compiles for."""
    nvrtc = nvrtc_bindings()
    return [f"sm_{number}" for number in _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs())]


def _compile_error(program: Program, log: str, status: str, given: frozenset[str]) -> CompileProblem:
    log = log.replace(program.file, program.place)
    mistake = _MISTAKE.search(log)
    if mistake is None:
        first = _ERROR_LINE.search(log)
        words = first[0].strip() if first else _assembler_words(log, status)
        return CompileError(program.place, None, words, log, assembler_remedy(log))
    if mistake["file"] == _EXPRESSIONS:
        return UnknownKernel(str(program.expression), program.place, None, expression_hint(mistake["what"]))
    file = mistake["file"]
    of_cuda = file.startswith(tuple(map(str, toolkit_folders())))
    refused = Mistake(file, int(mistake["line"]), mistake["what"], file == program.place, of_cuda)
    quoted = log[mistake.end() :].lstrip("\n").partition("\n")[0]
    remedy = macro_remedy(refused, quoted, program.options) or nvrtc_remedy(
        refused, log, host_headers.only_of_the_host(given)
    )
    return CompileError(refused.file, refused.line, refused.what, log, remedy)


def _assembler_words(log: str, status: str) -> str:
    """ptxas fails without a word where a kernel needs more static shared memory than there is; its figures tell."""
    for kernel, usage in read_log(log).usage.items():
        if usage.shared_bytes > STATIC_SHARED_BYTES:
            return (
                f"kernel {kernel} declares {usage.shared_bytes} bytes of shared memory; at most {STATIC_SHARED_BYTES} "
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


def _ptx(nvrtc: ModuleType, handle: Any) -> str:
    return _text(_fetch(nvrtc, handle, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))


def _text(content: bytes) -> str:
    return content.split(b"\0", 1)[0].decode(errors="replace")


def _checked(nvrtc: ModuleType, answer: Sequence[Any]) -> Any:
    """The payload of an NVRTC call; any status but success is a broken toolchain, since the input was accepted."""
    status, *payload = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ToolchainMissing(f"NVRTC failed unexpectedly ({status.name}): reinstall it or use another version")
    return payload[0] if payload else None
