"""Source in, binary with its evidence out; through the cache where there is one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compilations import Compilation, another, entries_of, kept
from pytest_gpuperf.compile.host_headers import stand_ins, texts_of
from pytest_gpuperf.compile.includes import Dependencies, dependencies
from pytest_gpuperf.compile.machine_code.occupancy import limits_of
from pytest_gpuperf.compile.machine_code.profile import Recorded
from pytest_gpuperf.compile.machine_code.symbols import find_kernel
from pytest_gpuperf.compile.nvcc import compile_by_nvcc
from pytest_gpuperf.compile.nvcc_options import NvccReads, nvcc_reads
from pytest_gpuperf.compile.nvrtc import NVCC, Program, compile_ptx
from pytest_gpuperf.compile.nvrtc_options import (
    DEFAULTS,
    canonical_options,
    include_folders,
    pre_includes,
    without_paths,
)
from pytest_gpuperf.compile.plain_text import without_comments
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import toolkit_folders
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.model.evidence import KernelBinary

Foreseen = Callable[[str], Iterable[str | None]]
"""From a source's hash to the name expressions of what else will be asked of it; None stands for its plain kernels."""

OnRecord = Callable[[], Recorded]
"""Asked for what is on record of the kernels that may come: machine code that is on record is not read again."""


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
    source: KernelSource,
    archs: Sequence[str],
    cache: CompileCache | None = None,
    foreseen: Foreseen = lambda _: (),
    on_record: OnRecord = dict,
) -> dict[str, KernelBinary]:
    """``compile_kernel`` for several architectures at once, on as many threads as there are cores; raises alike.

    What is ``foreseen`` goes into the cache along with the kernel, if that has to be compiled at all.
    """
    made = compile_together([source], archs, cache, foreseen, on_record)
    return {arch: binary for (_, arch), binary in made.items()}


def compile_together(
    sources: Iterable[KernelSource],
    archs: Sequence[str],
    cache: CompileCache | None = None,
    foreseen: Foreseen = lambda _: (),
    on_record: OnRecord = dict,
) -> dict[tuple[KernelSource, str], KernelBinary]:
    """``compile_for`` for several sources at once, whose machine code one run of nvdisasm reads; raises alike."""
    for arch in archs:
        limits_of(arch)
    prepared = {source: _prepare(source) for source in sources}

    def others() -> dict[Program, Dependencies]:
        return {
            one.program._replace(expression=name): one.headers
            for one in prepared.values()
            for name in foreseen(one.source_hash)
            if name != one.program.expression
        }

    wanted = {one.program: one.headers for one in prepared.values()}
    entries = entries_of(wanted, list(dict.fromkeys(archs)), cache, others, on_record())
    return {
        (source, arch): _binary(one, arch, entries[one.program, arch])
        for source, one in prepared.items()
        for arch in archs
    }


def as_recorded(
    source: KernelSource,
    binary: KernelBinary,
    recorded: Collection[str],
    cache: CompileCache | None = None,
    on_record: OnRecord = dict,
) -> KernelBinary:
    """The binary of ``compile_for``, or one with a ``recorded`` code hash, if the compiler makes that too.

    For a source that is that of the record, by a compiler that is: their machine codes may differ all the same.
    Raises as ``compile_kernel``.
    """
    prepared = _prepare(source)

    def wanted(entry: Compilation) -> bool:
        return _binary(prepared, binary.arch, entry).profile.code_hash in recorded

    wish = ",".join(sorted(recorded))
    entry = another(prepared.program, prepared.headers, binary.arch, wanted, wish, cache, on_record())
    return binary if entry is None else _binary(prepared, binary.arch, entry)


def ptx(source: KernelSource, arch: str, cache: CompileCache | None = None) -> str:
    """The PTX of the whole source for ``arch``; ``ptx_of`` cuts one kernel out.  Raises as ``compile_kernel``."""
    limits_of(arch)
    prepared = _prepare(source)
    entry = kept(prepared.program, prepared.headers, arch, cache)
    if entry is not None:
        return entry.ptx
    by_nvcc = source.compiler == NVCC
    return compile_by_nvcc(prepared.program, arch).ptx if by_nvcc else compile_ptx(prepared.program, arch)


def _prepare(source: KernelSource) -> _Prepared:
    by_nvcc = source.compiler == NVCC
    options = canonical_options(source.options, () if by_nvcc else DEFAULTS)
    toolkit = toolkit_folders()
    last = source.header_folders if by_nvcc else (*source.header_folders, *toolkit)  # nvcc has headers of its own
    if by_nvcc:
        reads = nvcc_reads(options, source.own_folder, last, os.environ)
    else:
        searched = (*source.own_folder, *include_folders(options), *last)
        reads = NvccReads(searched, pre_includes(options), (), followed=True)
    text = source.text.encode()
    headers = dependencies(text, reads.folders, reads.before)
    lacking = () if by_nvcc else stand_ins(headers.lacking)
    if lacking:
        headers = dependencies(text + texts_of(lacking), reads.folders, reads.before)
    headers = headers._replace(complete=headers.complete and reads.followed)
    in_order = (*_include_options(source.own_folder), *options, *_include_options(last))
    program = Program(
        source.text, source.program, source.place, in_order, source.expression, lacking, source.compiler,
        reads.environment,
    )  # fmt: skip
    parts = [without_comments(source.text), list(without_paths(options)), headers.of_user(toolkit)]
    return _Prepared(source, program, headers, hashlib.sha256(json.dumps(parts).encode()).hexdigest())


def _include_options(folders: Sequence[Path]) -> tuple[str, ...]:
    return tuple(f"--include-path={folder}" for folder in folders)


def _binary(prepared: _Prepared, arch: str, entry: Compilation) -> KernelBinary:
    source = prepared.source
    symbol = entry.lowered or find_kernel(source.name, entry.kernels, source.place)
    found = entry.kernels[symbol]
    return KernelBinary(
        name=source.expression or source.name,
        symbol=symbol,
        arch=arch,
        toolchain=toolchain(source.compiler),
        source_hash=prepared.source_hash,
        cubin=entry.cubin,
        profile=found.profile,
        parameters=found.parameters,
        max_threads_per_block=found.max_threads_per_block,
        required_block=found.required_block,
    )
