"""Source in, binary with its evidence out; through the cache where there is one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.compiler_texts import spills_in
from pytest_gpuperf.compile.includes import Headers, headers_of
from pytest_gpuperf.compile.machine_code.binary import NOTHING_RECORDED, Recorded, analyse
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.machine_code.symbols import find_kernel
from pytest_gpuperf.compile.nvcc import compile_by_nvcc, given_to, toolchain
from pytest_gpuperf.compile.nvrtc import HOST_HEADERS, NAMES_OF_THE_HOST, Compiled, compile_cubin
from pytest_gpuperf.compile.remedies import remedy
from pytest_gpuperf.compile.source import NVCC, KernelSource, hash_of_source, without_comments, without_folders
from pytest_gpuperf.compile.toolkit import disassembler, toolkit_folders
from pytest_gpuperf.model.evidence import KernelBinary

CACHE_VERSION = 15
"""Raised whenever what is read from a cubin or the form of an entry changes."""
_ATTEMPTS = 4
_LOSS = re.compile(r"Potential Performance Loss: .*")


class _Prepared(NamedTuple):
    """A source made ready, once for all architectures."""

    source: KernelSource
    headers: Headers
    source_hash: str


class _Entry(NamedTuple):
    """What is kept of one compilation."""

    made: Compiled
    kernels: dict[str, KernelBinary]
    """By symbol, as ``analyse`` returns them."""


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
    made_by = toolchain(source.compiler)  # loads the compiler before threads race for it

    def of_arch(arch: str) -> KernelBinary:
        made, kernels = _compiled(one, arch, cache, recorded)
        for loss in _LOSS.findall(made.log):
            warnings.warn(f"{source.place}: the assembler for {arch}: {loss} {remedy(loss, NVCC)}", stacklevel=2)
        symbol = made.lowered or find_kernel(source.name, kernels, source.place)
        return msgspec.structs.replace(
            kernels[symbol], name=source.expression or source.name, toolchain=made_by, source_hash=one.source_hash,
            cubin=made.cubin,
        )  # fmt: skip

    if len(archs) == 1:  # starting a thread takes longer than reading the cache
        return {archs[0]: of_arch(archs[0])}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        return dict(zip(archs, threads.map(of_arch, archs), strict=True))


def ptx(source: KernelSource, arch: str, cache: CompileCache | None = None) -> str:
    """The PTX of the whole source for ``arch``.  Raises as ``compile_kernel``."""
    limits_of(arch)
    return _compiled(_prepare(source), arch, cache, NOTHING_RECORDED).made.ptx


def _prepare(source: KernelSource) -> _Prepared:
    source.check_options()
    toolkit = [*toolkit_folders(), HOST_HEADERS]
    own = [] if source.compiler == NVCC else toolkit  # nvcc has headers of its own, and says which it read
    headers = headers_of(source.text.encode(), [*source.folders, *own], source.included_first)
    parts = [without_comments(source.text), without_folders(source.chosen), headers.outside(toolkit)]
    return _Prepared(source, headers, hash_of_source(json.dumps(parts)))


def _compiled(one: _Prepared, arch: str, cache: CompileCache | None, recorded: Recorded) -> _Entry:
    """The compiler's output with its evidence, from the cache where all that goes into it is known."""
    cache = cache if one.headers.complete or one.source.compiler == NVCC else None
    key = _key(one, arch) if cache is not None else ""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.msgpack.decode((cache and cache.get(key)) or b"", type=_Entry)
    made = _compile(one.source, arch)
    entry = _Entry(made, analyse(made, arch, recorded))
    if cache is not None:
        cache.put(key, msgspec.msgpack.encode(entry))
    return entry


def _key(one: _Prepared, arch: str) -> str:
    """The same for two checkouts of a project: what is found at places counts, and not where they are."""
    source = one.source
    found = {(name, digest) for name, digest, _ in one.headers.found}
    parts = [
        CACHE_VERSION, toolchain(source.compiler), disassembler().version, arch, source.file, source.text,
        source.expression, without_folders(source.chosen), sorted(found), NAMES_OF_THE_HOST.read_text("utf-8"),
        *source.named_folders, *(given_to(source, arch) if source.compiler == NVCC else ()),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _compile(source: KernelSource, arch: str) -> Compiled:
    """Compile; and compile again if the assembler's log is incomplete.

    A kernel without its line in the log would seem to spill nothing.
    """
    run = compile_by_nvcc if source.compiler == NVCC else compile_cubin
    for _ in range(_ATTEMPTS):
        made = run(source, arch)
        silent = read_cubin(made.cubin).kernels.keys() - spills_in(made.log).keys()
        if not silent:
            return made
    raise CompileProblem(
        f"{source.place}: the assembler of {source.compiler} did not report on {', '.join(sorted(silent))} for "
        f"{arch}, so spills are unknown: run again; if it happens again, reinstall the compiler"
    )
