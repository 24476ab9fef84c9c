"""Static records of the kernels of files that are already built, by their ELF sections alone: 0.1 ms for each.

The instructions of a few of them cost a hundred times as much, and are read where somebody asks for them.  Files have
the names that another build of the same project gives them: without versions, tags and hashes.
"""

from __future__ import annotations

import contextlib
import fnmatch
import math
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.compile.compile_errors import BadContainer, BadCubin, ToolchainMissing
from pytest_gpuperf.compile.machine_code.binary import Unread, profile_of, with_instructions
from pytest_gpuperf.compile.machine_code.containers import HEAD, FoundCubin, begins_as_container, extracted, is_cubin
from pytest_gpuperf.compile.machine_code.cubin import Cubin, CubinKernel, read_cubin
from pytest_gpuperf.compile.machine_code.occupancy import THREADS_PER_BLOCK, occupancy
from pytest_gpuperf.compile.machine_code.symbols import stable_symbol
from pytest_gpuperf.model.architectures import ARCHITECTURES, WARP_THREADS, plain
from pytest_gpuperf.model.evidence import StaticProfile, StaticRecord

MOST_BYTES = 16 << 30
"""Of the files of a wheel."""
_WHEEL = re.compile(r"^(?P<project>[A-Za-z0-9._]+)-[^-]+(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl$")
_TAG = re.compile(r"\.(?:cpython-\d+[a-z]*(?:-[\w-]+)?|abi3|pypy\d+[\w-]*)(?=\.(?:so|pyd)$)")
_REPAIRED = re.compile(r"-[0-9a-f]{8}(?=\.so\b)")
"""What auditwheel puts into the names of libraries that it adds."""
_UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""What ``zipfile`` raises of a file that is cut short, encrypted or packed in a way of its own."""


class AuditedKernel(NamedTuple):
    """One kernel for one architecture in one file."""

    file: str
    """In a wheel: ``cupy/cuda/cub.so``; empty of a file by itself."""
    arch: str
    record: StaticRecord
    """Without instructions.  ``kernel`` is the stable symbol, ``block`` the one that the occupancy is that of."""
    cubin: Path | None = None
    """Where its machine code lies; None where the record is all there is."""
    symbol: str = ""
    """In the cubin."""


def group_of(file: Path) -> str:
    """What all builds of the file are called: of a wheel its project, else the file's name."""
    wheel = _WHEEL.match(file.name)
    return wheel["project"] if wheel is not None else stable_name(file.name)


def stable_name(name: str) -> str:
    """``cupy/cuda/cub.so`` for ``cupy/cuda/cub.cpython-312-x86_64-linux-gnu.so``."""
    return _REPAIRED.sub("", _TAG.sub("", name))


def read_built(file: Path, folder: Path, skip: Sequence[str] = ()) -> tuple[list[AuditedKernel], list[str]]:
    """Every kernel of every architecture in the file, and why parts of a wheel could not be read.

    Cubins are put into the empty ``folder``.  In a wheel, files whose names match a pattern of ``skip`` are left out.
    Raises ``BadContainer`` with the reason where nothing at all can be read, and ``ToolchainMissing``.
    """
    kernels: list[AuditedKernel] = []
    unread: list[str] = []
    try:
        for number, (name, path) in enumerate(_parts(file, folder / "wheel", skip)):
            into = folder / f"cubins{number}"
            into.mkdir()
            try:
                kernels += _kernels(extracted(path, into, name or file.name), stable_name(name), name or file.name)
            except BadContainer as problem:
                unread.append(str(problem))
    except _UNREADABLE as problem:
        raise BadContainer(f"{file}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    if not kernels:
        nothing = (
            f"{file}: it has no GPU machine code, so there is nothing to audit; PTX alone is compiled by the driver "
            "that loads it"
        )
        raise BadContainer("\n".join(unread) or nothing)
    return kernels, unread


def _parts(file: Path, folder: Path, skip: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Names and paths of what may hold cubins in a wheel; any other file is its own only part, without a name.

    Of a wheel's files in the folder, bare cubins alone stay when the next one comes.
    """
    with file.open("rb") as opened:
        is_wheel = opened.read(HEAD).startswith(b"PK")
    if not is_wheel:
        yield "", file
        return
    with zipfile.ZipFile(file) as wheel:
        members = [one for one in wheel.infolist() if not one.is_dir()]
        if sum(one.file_size for one in members) > MOST_BYTES:
            raise BadContainer(f"{file}: it unpacks to more than {MOST_BYTES >> 30} GB")
        for member in members:
            if any(fnmatch.fnmatch(stable_name(member.filename), pattern) for pattern in skip):
                continue
            with wheel.open(member) as content:
                head = content.read(HEAD)
            if begins_as_container(head):
                path = Path(wheel.extract(member, folder))
                yield member.filename, path
                if not is_cubin(head):  # it is its own only one
                    path.unlink()


def _kernels(cubins: Iterable[FoundCubin], name: str, place: str) -> list[AuditedKernel]:
    """The kernels of one file; of what lies in it linked and unlinked, as ``-rdc=true`` leaves it, the linked one.

    ``place`` is what errors call the file.  Raises ``BadContainer``, ``ToolchainMissing``.
    """
    linked: list[AuditedKernel] = []
    unlinked: list[AuditedKernel] = []
    for path, named_arch in cubins:
        try:
            cubin = read_cubin(path.read_bytes())
        except BadCubin as problem:
            raise BadContainer(f"{place}: the machine code for {named_arch or 'a GPU'} in it is {problem}") from problem
        arch = named_arch or cubin.arch
        (unlinked if cubin.elf.relocatable else linked).extend(
            AuditedKernel(name, arch, _record(cubin, kernel, arch), path, kernel.symbol)
            for kernel in cubin.kernels.values()
        )
    known = {(one.arch, one.symbol) for one in linked}
    return linked + [one for one in unlinked if (one.arch, one.symbol) not in known]


def _record(cubin: Cubin, kernel: CubinKernel, arch: str) -> StaticRecord:
    """With the occupancy of the block that the code requires, at most takes, or fills an SM best with."""
    record = StaticRecord(kernel=stable_symbol(kernel.symbol), source_hash="", profile=profile_of(cubin, kernel))
    if plain(arch) not in ARCHITECTURES:
        return record
    bound = math.prod(kernel.required_block or (kernel.max_threads_per_block or 0,))
    sizes = [bound] if bound else range(WARP_THREADS, THREADS_PER_BLOCK + 1, WARP_THREADS)
    reached = {size: occupancy(record.profile, plain(arch), size) for size in sizes}
    best = max(reached, key=lambda size: reached[size].warps_per_sm)
    return msgspec.structs.replace(record, block=(best, 1, 1), occupancy=reached[best])


def with_instructions_of(kernels: Sequence[AuditedKernel]) -> dict[int, StaticRecord]:
    """Records with instructions, by place in ``kernels``; those that nvdisasm does not know are left out."""
    cubins = {path: read_cubin(path.read_bytes()) for path in {one.cubin for one in kernels} if path is not None}
    by_arch: dict[str, dict[int, Unread]] = defaultdict(dict)
    for number, one in enumerate(kernels):
        if one.cubin is not None and plain(one.arch) in ARCHITECTURES:
            cubin = cubins[one.cubin]
            by_arch[one.arch][number] = Unread(cubin, cubin.kernels[one.symbol], one.record.profile)
    profiles: dict[int, StaticProfile] = {}
    for arch, codes in by_arch.items():
        with contextlib.suppress(ToolchainMissing, BadCubin):  # the figures of the ELF sections stand
            profiles |= with_instructions(arch, codes)
    return {
        number: msgspec.structs.replace(kernels[number].record, profile=profile) for number, profile in profiles.items()
    }
