"""Running nvcc: a whole file, code of the host included, in; machine code of its kernels out.  Versions of compilers.

nvcc runs the machine's C++ compiler on the file, so that every header the host has may be used.
"""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
from pathlib import Path

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.compile.compile_errors import (
    ERROR_LINE,
    STATIC_EXTRA,
    BadOption,
    CompileProblem,
    ToolchainMissing,
    UnknownKernel,
)
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.symbols import named_alike, readable
from pytest_gpuperf.compile.nvrtc import Compiled, compile_cubin, refusal
from pytest_gpuperf.compile.remedies import MISTAKE
from pytest_gpuperf.compile.source import NVCC, NVRTC, VERBOSE_ASSEMBLER, KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool, find_tool

_REMEDY = (
    "Install a CUDA toolkit and put its bin folder on PATH, or pip install nvidia-cuda-nvcc nvidia-nvvm "
    "nvidia-cuda-crt nvidia-cuda-runtime; nvcc needs a C++ compiler of the host too (g++)"
)
VARIABLES = (
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH",
    "INCLUDES", "SYSTEM_INCLUDES", "CUDAFE_FLAGS", "PTXAS_FLAGS",
)  # fmt: skip
"""Variables that nvcc, its profile or the host's compiler heed."""
_TOLD_BY = re.compile(r"^(?:nvcc|ptxas) +(?:fatal|error) *: *")
"""Begins a mistake that nvcc gives no line for; of a file cut short it says so as the front end does."""
_FILE = re.compile(r"(?:\\ |\S)+")
"""One of a list of dependencies; blanks in its name have a backslash before them."""
_AS_NAMED = '#line 1 "{}"\n'
"""Names the file in ``__FILE__`` and in errors as NVRTC has it, and not as the file that nvcc is given."""
_INSTANCE = "\nstatic const auto gpuperf_instance __attribute__((used)) = &{};\n"
"""Of the host: has nvcc make an instance of a template that nothing else in the file asks for."""

_PROBE = KernelSource('extern "C" __global__ void probe() {}', "probe")
_IN_PTX = re.compile(r"^// Cuda compilation tools, .*\bV(\d+(?:\.\d+)+)", re.M)


@functools.cache
def nvcc() -> InstalledTool:
    """Path and version of nvcc.  Raises ``ToolchainMissing``."""
    return find_tool("nvcc", 'compiler="nvcc": there is no nvcc on this machine', _REMEDY)


def toolchain(compiler: str = NVRTC) -> str:
    """``nvrtc 13.0.88``: the compiler's full version, as it writes it into what it makes; or ``nvcc 13.0.88``.

    NVRTC's is read from compiled PTX, not from an installed package, so it is right for a toolkit's NVRTC too.
    Raises ``ToolchainMissing``.
    """
    return f"nvcc {nvcc().version}" if compiler == NVCC else _nvrtc()


@functools.cache
def _nvrtc() -> str:
    written = _IN_PTX.search(compile_cubin(_PROBE, "sm_80").ptx)
    if written is None:  # evidence of an unknown compiler could not be compared
        raise ToolchainMissing(f"NVRTC does not tell its version in what it compiles. Install another: {STATIC_EXTRA}")
    return f"nvrtc {written[1]}"


def compile_by_nvcc(source: KernelSource, arch: str) -> Compiled:
    """Compile to machine code for ``arch`` (``sm_90``), with the PTX that it is made from.

    Where the file itself makes no instance that the program's expression names, it is compiled again with one.
    Raises ``CompileError``, ``BadOption``, ``UnknownKernel`` and ``ToolchainMissing``.
    """
    made = _compiled(source, arch, "")
    if source.expression is None:
        return made
    there = _names(made)
    lowered = named_alike(source.expression, there)
    if lowered is None:
        made = _compiled(source, arch, _INSTANCE.format(source.expression))
        added = _names(made).keys() - there.keys()
        if len(added) != 1:
            hint = "an instance that the file makes itself is named as the machine code has it, types in full"
            raise UnknownKernel(source.expression, source.place, [*there.values()], hint)
        (lowered,) = added
    return made._replace(lowered=lowered)


def _compiled(source: KernelSource, arch: str, instance: str) -> Compiled:
    with scratch_folder("gpuperf-nvcc-") as folder:
        file = Path(folder) / Path(source.file).name
        cubin, listed = file.with_name("out.cubin"), file.with_name("out.d")
        file.write_text(_AS_NAMED.format(source.file) + source.text + instance, encoding="utf-8")
        command = [
            str(nvcc().path), "-cubin", f"--gpu-architecture={arch}", *source.all_options, VERBOSE_ASSEMBLER, "--keep",
            f"--keep-dir={folder}", "-MD", "-MF", str(listed), "-x", "cu", "-o", str(cubin), str(file),
        ]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        log = done.stdout.replace(source.file, source.place).replace(str(file), source.place)
        if done.returncode:
            raise _problem(log, source)
        ptx = file.with_suffix(".ptx").read_text(encoding="utf-8")
        files = _read_files(listed.read_text(encoding="utf-8"), file)
        return Compiled(cubin.read_bytes(), ptx, log, files=files)


def _read_files(listed: str, source: Path) -> tuple[tuple[str, str], ...]:
    """Path and SHA-256 of the headers that a rule of make lists behind its colon."""
    names = _FILE.findall(listed.partition(" : ")[2].replace("\\\n", " "))
    paths = (Path(name.replace("\\ ", " ")).absolute() for name in names)
    return tuple((str(path), hash_of(path)) for path in paths if path != source)


def hash_of(path: Path) -> str:
    """SHA-256 of a file's content; empty if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _problem(log: str, source: KernelSource) -> CompileProblem:
    lines = ERROR_LINE.findall(log) or ["nvcc failed without a message"]
    words = _TOLD_BY.sub("", next(filter(_TOLD_BY.match, lines), lines[0])).strip()
    if MISTAKE.search(log) is None:
        if "option" in words.lower():
            return BadOption(f"{source.place}: nvcc does not take one of its options: {words}")
        if "host compiler" in words.lower() or "cc1plus" in log or "PATH" in words:
            return ToolchainMissing(f"{source.place}: nvcc does not work here ({words}): {_REMEDY}")
    return refusal(source, log, words)


def _names(made: Compiled) -> dict[str, str]:
    return {symbol: readable(symbol) for symbol in read_cubin(made.cubin).kernels}
