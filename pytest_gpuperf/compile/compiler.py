"""Source in, binary with its evidence out; through the cache where there is one."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.analysis import KernelAnalysis, analyse
from pytest_gpuperf.compile.architectures import limits_of
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.cubin import read_cubin
from pytest_gpuperf.compile.errors import CompileProblem
from pytest_gpuperf.compile.includes import Dependencies, dependencies
from pytest_gpuperf.compile.names import find_kernel
from pytest_gpuperf.compile.nvrtc import Program, compile_cubin, compile_ptx
from pytest_gpuperf.compile.options import canonical_options, include_folders, pre_includes, without_paths
from pytest_gpuperf.compile.ptxas_log import read_log
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import disassembler, toolkit_folders
from pytest_gpuperf.evidence import KernelBinary, Record

CACHE_VERSION = 3
"""Raised whenever what is read from a cubin, or the form of an entry, changes."""

_PROBE = 'extern "C" __global__ void probe() {}'


class _Entry(Record, frozen=True):
    """What the cache keeps of one compilation: all kernels of a source."""

    cubin: bytes
    kernels: dict[str, KernelAnalysis]
    lowered: str | None = None


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
    limits_of(arch)
    return _binary(_prepare(source), arch, cache)


def compile_for(
    source: KernelSource, archs: Sequence[str], cache: CompileCache | None = None
) -> dict[str, KernelBinary]:
    """``compile_kernel`` for several architectures at once, on as many threads as there are cores; raises alike."""
    for arch in archs:
        limits_of(arch)
    prepared = _prepare(source)
    distinct = list(dict.fromkeys(archs))
    if len(distinct) < 2:
        return {arch: _binary(prepared, arch, cache) for arch in distinct}
    toolchain()  # loads the compiler before threads race for it
    with ThreadPoolExecutor(max_workers=min(len(distinct), os.cpu_count() or 1)) as pool:
        made = pool.map(lambda arch: _binary(prepared, arch, cache), distinct)
        return dict(zip(distinct, made, strict=True))


def ptx(source: KernelSource, arch: str) -> str:
    """The PTX of the whole source for ``arch``; ``ptx_of`` cuts one kernel out.  Raises as ``compile_kernel``."""
    limits_of(arch)
    text, _ = compile_ptx(_prepare(source).program, arch)
    return text


@functools.cache
def toolchain() -> str:
    """``nvrtc 13.0.88``: the compiler's full version, as it writes it into what it makes.

    Read from a compiled cubin, not from an installed package, so it is right for a toolkit's NVRTC too.
    Raises ``ToolchainMissing``.
    """
    probe = Program(_PROBE, "probe.cu", "probe.cu", ())
    return f"nvrtc {read_cubin(compile_cubin(probe, 'sm_80').cubin).assembler}"


def _prepare(source: KernelSource) -> _Prepared:
    options = canonical_options(source.options)
    toolkit = toolkit_folders()
    last = (*source.header_folders, *toolkit)
    searched = (*source.own_folder, *include_folders(options), *last)
    headers = dependencies(source.text.encode(), searched, pre_includes(options))
    in_order = (*_include_options(source.own_folder), *options, *_include_options(last))
    program = Program(source.text, source.program, source.place, in_order, source.expression)
    parts = [source.text, list(without_paths(options)), headers.of_user(toolkit)]
    return _Prepared(source, program, headers, hashlib.sha256(json.dumps(parts).encode()).hexdigest())


def _include_options(folders: Sequence[Path]) -> tuple[str, ...]:
    return tuple(f"--include-path={folder}" for folder in folders)


def _binary(prepared: _Prepared, arch: str, cache: CompileCache | None) -> KernelBinary:
    entry = _cached(_key(prepared, arch), cache, prepared.headers.complete, lambda: _compile(prepared.program, arch))
    source = prepared.source
    symbol = entry.lowered or find_kernel(source.name, entry.kernels, source.place)
    found = entry.kernels[symbol]
    return KernelBinary(
        name=source.expression or source.name,
        symbol=symbol,
        arch=arch,
        toolchain=toolchain(),
        source_hash=prepared.source_hash,
        cubin=entry.cubin,
        profile=found.profile,
        parameters=found.parameters,
        max_threads_per_block=found.max_threads_per_block,
    )


_ALONE = threading.Lock()
_ATTEMPTS = 3


def _compile(program: Program, arch: str) -> _Entry:
    """Compile, and compile again if the assembler's log is incomplete.

    Without its line in the log a kernel would seem to use no shared memory, no barriers and no spills, as
    happened where NVRTC took it from a cache of its own; what is incomplete is never believed or kept.
    """
    compiled = compile_cubin(program, arch)
    for _ in range(_ATTEMPTS):
        silent = sorted(set(read_cubin(compiled.cubin).kernels) - set(read_log(compiled.log).usage))
        if not silent:
            return _Entry(
                cubin=compiled.cubin,
                kernels=analyse(compiled.cubin, compiled.log, compiled.ptx, arch),
                lowered=compiled.lowered,
            )
        with _ALONE:
            compiled = compile_cubin(program, arch)
    raise CompileProblem(
        f"{program.place}: the assembler of NVRTC did not report on {', '.join(silent)} for {arch}, so registers and "
        f"spills are unknown: run again; if it stays so, reinstall nvidia-cuda-nvrtc"
    )


def _cached(key: str, cache: CompileCache | None, complete: bool, make: Callable[[], _Entry]) -> _Entry:
    if cache is None or not complete:
        return make()
    kept = cache.get(key)
    if kept is not None:
        try:
            return msgspec.msgpack.decode(kept, type=_Entry)
        except (msgspec.DecodeError, msgspec.ValidationError):
            cache.discard(key)
    entry = make()
    cache.put(key, msgspec.msgpack.encode(entry))
    return entry


def _key(prepared: _Prepared, arch: str) -> str:
    program, headers = prepared.program, prepared.headers
    parts = [
        CACHE_VERSION,
        toolchain(),
        disassembler().version,
        arch,
        program.file,
        program.text,
        program.options,
        program.expression,
        [(name, str(path), digest) for name, path, digest in headers.found],
        headers.missing,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
