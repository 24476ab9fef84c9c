"""Results of compilations: taken from the cache or made, on as many threads as there are cores.

Half of the work would be nvdisasm, and nearly all of that is its start.  So machine code that is on record is not
read again.  Programs that are known to be wanted next are made along with the one that is wanted now, and one run of
nvdisasm per architecture reads all that is new.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from pytest_gpuperf.compile import host_headers
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import CompileProblem
from pytest_gpuperf.compile.includes import Dependencies
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.profile import KernelAnalysis, Recorded, analyse
from pytest_gpuperf.compile.nvcc import compile_by_nvcc
from pytest_gpuperf.compile.nvrtc import NVCC, NVRTC, Compiled, Program, compile_cubin
from pytest_gpuperf.compile.nvrtc_options import without_paths
from pytest_gpuperf.compile.ptxas_log import read_log
from pytest_gpuperf.compile.toolkit import disassembler, toolkit_folders
from pytest_gpuperf.compile.version import toolchain
from pytest_gpuperf.model.base_record import Record

CACHE_VERSION = 13
"""Raised whenever what is read from a cubin, or the form of an entry, changes."""


class Compilation(Record, frozen=True):
    """Cached result of one compilation: all kernels of a source, or one instance of a template."""

    cubin: bytes
    ptx: str
    kernels: dict[str, KernelAnalysis]
    lowered: str | None = None
    log: str = ""
    """What the assembler said, for a kernel whose machine code is read later."""


Job = tuple[Program, str]
"""A program, and the architecture that it is compiled for."""


def entries_of(
    wanted: Mapping[Program, Dependencies],
    archs: Sequence[str],
    cache: CompileCache | None,
    others: Callable[[], Mapping[Program, Dependencies]] = dict,
    recorded: Recorded | None = None,
) -> dict[Job, Compilation]:
    """The entries of each program that is ``wanted``, by its architectures; programs come with their headers.

    ``others``, asked only if something has to be made, are programs that go into the cache along with them.
    Raises ``CompileProblem`` for programs that are ``wanted``, and never for another one.
    """
    recorded = recorded or {}
    found = {(one, arch): kept(one, headers, arch, cache) for one, headers in wanted.items() for arch in archs}
    missing = {job: entry for job, entry in found.items() if entry is None}
    made: dict[Job, Compilation] = {}
    if missing:
        for compiler in {one.compiler for one, _ in missing}:
            toolchain(compiler)  # loads the compiler before threads race for it
        more = {} if cache is None else others()
        along = {} if cache is None else _lacking(more, dict.fromkeys(arch for _, arch in missing), cache)
        made = _make_along(missing, along, recorded)
        headers_of = {**more, **wanted}
        for (one, arch), entry in made.items():
            if cache is not None and headers_of[one].complete:
                cache.put(_key(one, headers_of[one], arch), msgspec.msgpack.encode(entry))
    return {job: made[job] if entry is None or job in made else entry for job, entry in found.items()}


def kept(program: Program, headers: Dependencies, arch: str, cache: CompileCache | None) -> Compilation | None:
    """The cache's entry; None if there is none, or no cache that may be used."""
    if cache is None or not headers.complete:
        return None
    key = _key(program, headers, arch)
    content = cache.get(key)
    try:
        return None if content is None else msgspec.msgpack.decode(content, type=Compilation)
    except msgspec.DecodeError:  # a ValidationError is one
        cache.discard(key)
        return None


def another(
    program: Program,
    headers: Dependencies,
    arch: str,
    wanted: Callable[[Compilation], bool],
    wish: str,
    cache: CompileCache | None,
    recorded: Recorded,
) -> Compilation | None:
    """Compile once more, up to nine times, for an entry that is ``wanted``; it takes the place of the cache's.

    NVRTC makes several machine codes of one source where a kernel indexes an array in local memory (seen with
    13.0.88).  Five alike at first are taken for all there are.  None if there is no such entry; the cache remembers
    that of each ``wish``, which says in words what is ``wanted``.
    """
    cache = cache if headers.complete else None
    key = _key(program, headers, arch)
    vain = hashlib.sha256(f"{key} in vain for {wish}".encode()).hexdigest()
    if cache is not None and vain in cache:
        return None
    cubins = set()
    for number in range(1, _FORMS_TRIED + 1):
        (entry,) = _make({(program, arch): None}, recorded).values()
        if wanted(entry):
            if cache is not None:
                cache.put(key, msgspec.msgpack.encode(entry))
            return entry
        cubins.add(entry.cubin)
        if number == _ALIKE and len(cubins) == 1:
            break
    if cache is not None:
        cache.put(vain, b"")
    return None


Begun = Mapping[Job, Compilation | None]
"""What is to be made, each with an entry whose machine code has yet to be read, or None: to be compiled first."""


def _lacking(
    programs: Mapping[Program, Dependencies], archs: Iterable[str], cache: CompileCache
) -> dict[Job, Compilation | None]:
    """Jobs of which the cache has no entry; none if it could not keep their results."""
    if cache.problem is not None:
        return {}
    keyed = [(one, headers) for one, headers in programs.items() if headers.complete]
    found = {(one, arch): kept(one, headers, arch, cache) for arch in archs for one, headers in keyed}
    return {job: entry for job, entry in found.items() if entry is None}


def _make_along(wanted: Begun, along: Begun, recorded: Recorded) -> dict[Job, Compilation]:
    try:
        return _make({**wanted, **along}, recorded)
    except CompileProblem:
        if not along:
            raise
    return _make(wanted, recorded)  # one of them all has a problem, and says so when it is made by itself


def _make(jobs: Begun, recorded: Recorded) -> dict[Job, Compilation]:
    """Compile each job by itself, and read those of an architecture together as soon as all of them are there."""
    if len(jobs) == 1:
        return _read(list(jobs), itertools.starmap(_compiled, jobs.items()), recorded)
    archs = list(dict.fromkeys(arch for _, arch in jobs))
    with (
        ThreadPoolExecutor(max_workers=min(len(jobs), os.cpu_count() or 1)) as compilers,
        ThreadPoolExecutor(max_workers=len(archs)) as readers,
    ):
        of_arch = [[job for job in jobs if job[1] == arch] for arch in archs]
        compiling = [compilers.map(_compiled, some, [jobs[job] for job in some]) for some in of_arch]
        reading = functools.partial(_read, recorded=recorded)
        return {job: entry for entries in readers.map(reading, of_arch, compiling) for job, entry in entries.items()}


def _read(jobs: Sequence[Job], compiling: Iterable[Compiled], recorded: Recorded) -> dict[Job, Compilation]:
    """Entries of jobs for one architecture."""
    compiled = list(compiling)
    analyses = analyse(compiled, jobs[0][1], recorded)
    return {
        job: Compilation(cubin=one.cubin, ptx=one.ptx, kernels=kernels, lowered=one.lowered, log=one.log)
        for job, one, kernels in zip(jobs, compiled, analyses, strict=True)
    }


_WITH_LINES = ("--generate-line-info", "--device-debug")
"""Options by which the machine code names files."""
_FORMS_TRIED = 9
_ALIKE = 5
_NAMES = {NVRTC: "NVRTC", NVCC: "nvcc"}
_PACKAGES = {NVRTC: "nvidia-cuda-nvrtc", NVCC: "it"}
_ALONE = threading.Lock()
_MORE_ATTEMPTS = 3


def _compiled(job: Job, before: Compilation | None = None) -> Compiled:
    """What was compiled ``before``; else compile, and compile again, alone, if the assembler's log is incomplete.

    Without its line in the log a kernel would seem to use no shared memory, no barriers and no spills.
    """
    if before is not None:
        return Compiled(before.cubin, before.ptx, before.log, before.lowered)
    program, arch = job
    for attempt in range(1 + _MORE_ATTEMPTS):
        with _ALONE if attempt else contextlib.nullcontext():
            compiled = (compile_by_nvcc if program.compiler == NVCC else compile_cubin)(program, arch)
        silent = read_cubin(compiled.cubin).kernels.keys() - read_log(compiled.log).usage.keys()
        if not silent:
            return compiled
    raise CompileProblem(
        f"{program.place}: the assembler of {_NAMES[program.compiler]} did not report on {', '.join(sorted(silent))} "
        f"for {arch}, so registers and spills are unknown: run again; if it stays so, reinstall "
        f"{_PACKAGES[program.compiler]}"
    )


def _key(program: Program, headers: Dependencies, arch: str) -> str:
    """Cache key of a compilation: the same for two checkouts of a project, unless lines of the source go into it.

    What include paths lead to counts, and not the paths.
    """
    placed = any(option.startswith(_WITH_LINES) for option in program.options)
    options = program.options if placed and headers.found else without_paths(program.options)
    found = [(name, str(path), digest) for name, path, digest in headers.found]
    found = found if placed else headers.placed(toolkit_folders())
    tools = [CACHE_VERSION, host_headers.DIGEST, toolchain(program.compiler), disassembler().version, arch]
    parts = [*tools, program.file, program.text, options, program.environment, program.expression, found]
    parts.append(headers.missing)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
