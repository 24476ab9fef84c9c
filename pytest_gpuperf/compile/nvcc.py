"""Running nvcc: a whole file, code of the host included, in; machine code of its kernels out.  Versions of compilers.

nvcc runs the machine's C++ compiler on the file, so that every header the host has may be used: which ones only nvcc
knows, and it says so by the preprocessed text.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_gpuperf.compile.compile_errors import ERROR_LINE, STATIC_EXTRA, BadOption, CompileProblem, ToolchainMissing
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.symbols import find_kernel, named_alike, readable
from pytest_gpuperf.compile.nvrtc import Compiled, compile_cubin, refusal
from pytest_gpuperf.compile.remedies import MISTAKE
from pytest_gpuperf.compile.source import NVCC, NVRTC, VERBOSE_ASSEMBLER, KernelSource
from pytest_gpuperf.compile.toolkit import InstalledTool, find_tool, toolkit_folders

_REMEDY = (
    "Install a CUDA toolkit and put its bin folder on PATH, or pip install nvidia-cuda-nvcc nvidia-nvvm "
    "nvidia-cuda-crt nvidia-cuda-runtime; nvcc needs a C++ compiler of the host too (g++)"
)
KEPT = 32
"""Files, each for one architecture, that a process keeps: several kernels of a file are compiled at once."""
_VARIABLES = "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"
_PREFIX = re.compile(r"^(?:nvcc|ptxas) +(?:fatal|error) *: *")
"""Begins a mistake that nvcc gives no line for; of a file cut short it says so as the front end does."""
_AS_NAMED = '#line 1 "{}"\n'
"""Names the file in ``__FILE__`` and in errors as NVRTC has it, and not as the file that nvcc is given."""

_NAMED = """
#line 1 "__nv_name_map"
template <auto*> __global__ void gpuperf_named() {{}} template __global__ void gpuperf_named<&{}>();
"""
"""Has nvcc make the instance that an expression names, and say in the name of another which one that is."""
_BY_ADDRESS = re.compile(r"gpuperf_named<&(?:\((void .*)\)|(.*))>", re.DOTALL)

_PROBE = KernelSource('extern "C" __global__ void probe() {}', "probe")
_IN_PTX = re.compile(r"^// Cuda compilation tools, .*\bV(\d+(?:\.\d+)+)", re.M)


@functools.cache
def nvcc() -> InstalledTool:
    """Path and version of nvcc.  Raises ``ToolchainMissing``."""
    return find_tool("nvcc", 'compiler="nvcc": there is no nvcc on this machine', _REMEDY)


@functools.cache
def toolchain(compiler: str = NVRTC) -> str:
    """``nvrtc 13.0.88``: the compiler's full version, as it writes it into what it makes; or ``nvcc 13.0.88``.

    NVRTC's is read from compiled PTX, not from an installed package, so it is right for a toolkit's NVRTC too.
    Raises ``ToolchainMissing``.
    """
    if compiler == NVCC:
        return f"nvcc {nvcc().version}"
    written = _IN_PTX.search(compile_cubin(_PROBE, "sm_80").ptx)
    if written is None:  # evidence of an unknown compiler could not be compared
        raise ToolchainMissing(f"NVRTC writes no version into its machine code. Install another: {STATIC_EXTRA}")
    return f"nvrtc {written[1]}"


def compile_by_nvcc(source: KernelSource, arch: str) -> Compiled:
    """Compile to machine code for ``arch`` (``sm_90``), with the PTX that it is made from: once in a process.

    Raises ``CompileError``, ``BadOption``, ``UnknownKernel`` and ``ToolchainMissing``.
    """
    whole = dataclasses.replace(source, name="", name_expression=None)
    made = _compiled(whole, arch)
    lowered = source.expression and named_alike(source.expression, read_cubin(made.cubin).kernels)
    if source.expression and lowered is None:
        made = _compiled(dataclasses.replace(source, text=source.text + _NAMED.format(source.expression)), arch)
        there = read_cubin(made.cubin).kernels
        named = "".join(one[1] or one[2] for one in map(_BY_ADDRESS.fullmatch, map(readable, there)) if one)
        lowered = find_kernel(named or source.expression, there, source.place)
    return made._replace(lowered=lowered)


def given_to(source: KernelSource, arch: str) -> tuple[str | None, ...]:
    """What nvcc is given with its options: the hash of the text with all headers, and the variables that it heeds.

    Raises as ``compile_by_nvcc``.
    """
    return _preprocessed(dataclasses.replace(source, name="", name_expression=None), arch), *map(os.getenv, _VARIABLES)


@functools.lru_cache(KEPT)
def _preprocessed(source: KernelSource, arch: str) -> str:
    with TemporaryDirectory(prefix="gpuperf-nvcc-") as folder:
        _run(source, arch, Path(folder), "-E")
        text = Path(folder, "made").read_bytes().replace(folder.encode(), b"")
        return hashlib.sha256(text).hexdigest()


@functools.lru_cache(KEPT)
def _compiled(source: KernelSource, arch: str) -> Compiled:
    with TemporaryDirectory(prefix="gpuperf-nvcc-") as folder:
        log = _run(source, arch, Path(folder), "-cubin", VERBOSE_ASSEMBLER, "--keep", f"--keep-dir={folder}")
        ptx = Path(folder, Path(source.file).name).with_suffix(".ptx").read_text(encoding="utf-8")
        return Compiled(Path(folder, "made").read_bytes(), ptx, log)


def _run(source: KernelSource, arch: str, folder: Path, *options: str) -> str:
    """Its output; what it makes is the file ``made``."""
    file = folder / Path(source.file).name
    file.write_text(_AS_NAMED.format(source.file) + source.text, encoding="utf-8")
    command = [
        str(nvcc().path), f"--gpu-architecture={arch}", *source.all_options, *options,
        *(f"-Xcompiler=-idirafter,{one}" for one in toolkit_folders()),  # curand_kernel.h, where nvcc has none
        "-x", "cu", "-o", str(folder / "made"), str(file),
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    log = done.stdout.replace(source.file, source.place).replace(str(file), source.place)
    if done.returncode:
        raise _problem(log, source)
    return log


def _problem(log: str, source: KernelSource) -> CompileProblem:
    lines = ERROR_LINE.findall(log) or ["nvcc failed without a message"]
    message = _PREFIX.sub("", next(filter(_PREFIX.match, lines), lines[0])).strip()
    if MISTAKE.search(log) is None:
        if "option" in message.lower():
            return BadOption(f"{source.place}: nvcc rejects an option: {message}")
        if "host compiler" in message.lower() or "cc1plus" in log or "PATH" in message:
            return ToolchainMissing(f"{source.place}: nvcc does not work here ({message}): {_REMEDY}")
    return refusal(source, log, message)
