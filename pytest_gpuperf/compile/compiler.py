"""Source in, binary with its evidence out; through the cache where there is one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.compiler_options import (
    DEFAULTS,
    INCLUDE,
    PRE_INCLUDE,
    accepted,
    values,
    with_lines,
    without_folders,
)
from pytest_gpuperf.compile.compiler_texts import read_log
from pytest_gpuperf.compile.includes import Dependencies, dependencies
from pytest_gpuperf.compile.machine_code.binary import NOTHING_RECORDED, Recorded, analyse
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.machine_code.symbols import find_kernel
from pytest_gpuperf.compile.nvcc import VARIABLES, compile_by_nvcc, hash_of, toolchain
from pytest_gpuperf.compile.nvrtc import HOST_HEADERS, NVCC, Compiled, Program, compile_cubin
from pytest_gpuperf.compile.source import KernelSource, without_comments
from pytest_gpuperf.compile.toolkit import disassembler, toolkit_folders
from pytest_gpuperf.model.evidence import KernelBinary

CACHE_VERSION = 13
"""Raised whenever what is read from a cubin, the form of an entry, or a name of the host's headers changes."""
_ALONE = threading.Lock()
_ATTEMPTS = 4
_KERNELS = dict[str, KernelBinary]
"""By symbol, as ``analyse`` returns them."""
_T = TypeVar("_T")


class _Prepared(NamedTuple):
    """A source made ready, once for all architectures."""

    source: KernelSource
    program: Program
    headers: Dependencies
    source_hash: str


def compile_kernel(source: KernelSource, arch: str, *, cache: CompileCache | None = None) -> KernelBinary:
    """Compile one kernel for one architecture and read its static evidence.

    Raises ``CompileError``, ``UnknownKernel``, ``BadOption``, ``UnknownArchitecture``, ``ToolchainMissing``.
    """
    return compile_for(source, [arch], cache)[arch]


def compile_for(
    source: KernelSource, archs: Sequence[str], cache: CompileCache | None = None, recorded: Recorded = NOTHING_RECORDED
) -> dict[str, KernelBinary]:
    """``compile_kernel`` for several architectures, on as many threads as there are cores; raises alike.

    Machine code that is ``recorded`` is not read again.
    """
    archs = list(dict.fromkeys(archs))
    for arch in archs:
        limits_of(arch)
    one = _prepare(source)
    toolchain(source.compiler)  # loads the compiler before threads race for it

    def of_arch(arch: str) -> KernelBinary:
        made = _compiled(one, arch, cache)
        return _binary(one, made, _read(made, arch, cache, recorded))

    if len(archs) == 1:
        return {archs[0]: of_arch(archs[0])}
    with ThreadPoolExecutor(max_workers=min(len(archs), os.cpu_count() or 1)) as threads:
        return dict(zip(archs, threads.map(of_arch, archs), strict=True))


def ptx(source: KernelSource, arch: str, cache: CompileCache | None = None) -> str:
    """The PTX of the whole source for ``arch``.  Raises as ``compile_kernel``."""
    limits_of(arch)
    return _compiled(_prepare(source), arch, cache).ptx


def _prepare(source: KernelSource) -> _Prepared:
    options = accepted(source.options)
    toolkit = toolkit_folders()
    by_nvcc = source.compiler == NVCC  # it has headers of its own, and says which it read
    last = () if by_nvcc else (*toolkit, HOST_HEADERS)
    folders = [*source.own_folder, *map(Path, values(INCLUDE, options)), *source.header_folders, *last]
    headers = dependencies(source.text.encode(), folders, values(PRE_INCLUDE, options))
    chosen = (*(() if by_nvcc else DEFAULTS), *options)
    in_order = (*_include_options(source.own_folder), *chosen, *_include_options(source.header_folders))
    program = Program(source.text, source.program, source.place, in_order, source.expression, source.compiler)
    parts = [without_comments(source.text), without_folders(chosen), headers.outside([*toolkit, HOST_HEADERS])]
    return _Prepared(source, program, headers, hashlib.sha256(json.dumps(parts).encode()).hexdigest())


def _include_options(folders: Sequence[Path]) -> tuple[str, ...]:
    return tuple(f"--include-path={folder}" for folder in folders)


def _compiled(one: _Prepared, arch: str, cache: CompileCache | None) -> Compiled:
    """The compiler's output, from the cache as long as no header changed that it read."""
    cache = cache if one.headers.complete or one.program.compiler == NVCC else None
    key = _key(one, arch) if cache is not None else ""
    kept = _kept(cache, key, Compiled)
    if kept is not None and all(hash_of(Path(path)) == digest for path, digest in kept.files):
        return kept
    made = _compile(one.program, arch)
    if cache is not None:
        cache.put(key, msgspec.msgpack.encode(made))
    return made


def _key(one: _Prepared, arch: str) -> str:
    """The same for two checkouts of a project, unless places go into the machine code: what is found at them counts."""
    program, headers = one.program, one.headers
    by_place = with_lines(program.options) and bool(headers.found)
    options = program.options if by_place else without_folders(program.options)
    found = [(name, digest, str(path) if by_place else "") for name, digest, path in headers.found]
    heeded = {name: os.environ.get(name) for name in VARIABLES} if program.compiler == NVCC else {}
    parts = [
        CACHE_VERSION, toolchain(program.compiler), arch, program.file, program.text, program.expression, options,
        sorted(set(found)), headers.missing, heeded,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _compile(program: Program, arch: str) -> Compiled:
    """Compile; and compile again, alone, if the assembler's log is incomplete.

    Without its line in the log a kernel would seem to use no shared memory, no barriers and no spills.
    """
    run = compile_by_nvcc if program.compiler == NVCC else compile_cubin
    for attempt in range(_ATTEMPTS):
        with _ALONE if attempt else contextlib.nullcontext():
            made = run(program, arch)
        silent = read_cubin(made.cubin).kernels.keys() - read_log(made.log).shared_bytes.keys()
        if not silent:
            return made
    raise CompileProblem(
        f"{program.place}: the assembler of {program.compiler} did not report on {', '.join(sorted(silent))} for "
        f"{arch}, so registers and spills are unknown: run again; if it stays so, reinstall that compiler"
    )


def _read(made: Compiled, arch: str, cache: CompileCache | None, recorded: Recorded) -> _KERNELS:
    """Evidence of the kernels of a cubin: from the cache, the records, or the machine code."""
    key = _evidence_key(made, arch)
    kernels = _kept(cache, key, _KERNELS)
    if kernels is None:
        kernels = analyse(made, arch, recorded)
        if cache is not None:
            cache.put(key, msgspec.msgpack.encode(kernels))
    return kernels


def _evidence_key(made: Compiled, arch: str) -> str:
    cubin = hashlib.sha256(made.cubin).hexdigest()
    texts = hashlib.sha256((made.ptx + made.log).encode()).hexdigest()
    parts = [CACHE_VERSION, disassembler().version, arch, cubin, texts, made.lowered]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _kept(cache: CompileCache | None, key: str, kind: type[_T]) -> _T | None:
    content = cache.get(key) if cache is not None else None
    with contextlib.suppress(msgspec.DecodeError):
        return None if content is None else msgspec.msgpack.decode(content, type=kind)
    return None


def _binary(one: _Prepared, made: Compiled, kernels: _KERNELS) -> KernelBinary:
    source = one.source
    symbol = made.lowered or find_kernel(source.name, kernels, source.place)
    return msgspec.structs.replace(
        kernels[symbol], name=source.expression or source.name, toolchain=toolchain(source.compiler),
        source_hash=one.source_hash, cubin=made.cubin,
    )  # fmt: skip
