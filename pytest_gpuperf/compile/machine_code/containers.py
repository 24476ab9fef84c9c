"""Cubins out of what is already built: fat binaries, the libraries, objects and archives that hold them, and wheels.

NVIDIA's cuobjdump reads a container and its compression, within a time limit; each cubin is read as any other file of a
stranger is.  Files have the names that another build of the same project gives them: without versions, tags and hashes.
"""

from __future__ import annotations

import fnmatch
import mmap
import re
import shutil
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.compile.compile_errors import BadContainer, ToolchainMissing
from pytest_gpuperf.compile.machine_code.cubin import EM_CUDA
from pytest_gpuperf.compile.toolkit import container_reader

_FATBIN = struct.pack("<I", 0xBA55ED50)
"""How each fat binary begins, wherever in a file it lies."""
_ELF, _ARCHIVE, _ZIP = b"\x7fELF", b"!<arch>\n", b"PK"
_MACHINE = slice(18, 20)
"""Of an ELF file's header."""
_HEAD = 64
LIMIT_S = 300.0
"""The largest library that was seen takes 0.5 s for each 140 MB of its cubins (docs/results/audit.md)."""
MOST_BYTES = 16 << 30
"""Of the files of a wheel."""
_NAMED = re.compile(r"\.(?P<number>\d+)\.(?P<arch>sm_\d+[af]?)\.cubin$")
_NOTHING_THERE = ("does not contain device code", "No ELF file found")
_WHEEL = re.compile(r"^(?P<project>[A-Za-z0-9._]+)-[^-]+(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl$")
_TAG = re.compile(r"\.(?:cpython-\d+[a-z]*(?:-[\w-]+)?|abi3|pypy\d+[\w-]*)(?=\.(?:so|pyd)$)")
_REPAIRED = re.compile(r"-[0-9a-f]{8}(?=\.so\b)")
"""What auditwheel puts into the names of libraries that it adds."""
_UNZIPPING = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What ``zipfile`` raises of a file that is cut short, encrypted or packed in a way of its own."""


class FoundCubin(NamedTuple):
    """One cubin of a file."""

    path: Path
    arch: str
    """``sm_90a`` as the container names it; empty of a bare cubin, which says ``sm_90`` itself."""


class BuiltFile(NamedTuple):
    """A file with machine code for GPUs."""

    name: str
    """``cupy/cuda/cub.so`` in a wheel; empty of the file itself."""
    cubins: list[FoundCubin]
    problem: str = ""
    """Why they cannot be had, where they cannot."""


# --- one container -------------------------------------------------------------------------------


def begins_as_container(head: bytes) -> bool:
    """Whether a file with these first bytes may hold cubins: a fat binary, an ELF file or an archive."""
    return head.startswith((_FATBIN, _ELF, _ARCHIVE))


def is_cubin(head: bytes) -> bool:
    """Whether a file that begins so is a bare cubin."""
    return head.startswith(_ELF) and head[_MACHINE] == struct.pack("<H", EM_CUDA)


def extracted(file: Path, folder: Path, place: str) -> list[FoundCubin]:
    """The cubins of ``file``, in its own order; those of a container are put into the empty ``folder``.

    ``place`` is what errors call the file.  There is none where the file has no machine code for GPUs, as
    one that has PTX alone.
    Raises ``BadContainer``, ``ToolchainMissing``, ``OSError``.
    """
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
        if is_cubin(head):
            return [FoundCubin(file, "")]
        if not begins_as_container(head):
            return []
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(_FATBIN) < 0:
                return []
    _take_apart(file.resolve(), folder, place)
    names = ((_NAMED.search(path.name), path) for path in folder.iterdir())
    found = sorted((int(name["number"]), name["arch"], path) for name, path in names if name is not None)
    return [FoundCubin(path, arch) for _, arch, path in found]


def cubins_by_arch(content: bytes, place: str) -> dict[str, list[bytes]]:
    """The cubins of a container that is at hand as bytes, by architecture.  Raises as ``extracted``."""
    with scratch_folder("gpuperf-fatbin-") as scratch:
        file, folder = Path(scratch, "content"), Path(scratch, "cubins")
        file.write_bytes(content)
        folder.mkdir()
        by_arch: dict[str, list[bytes]] = {}
        for path, arch in extracted(file, folder, place):
            by_arch.setdefault(arch, []).append(path.read_bytes())
        return by_arch


def _take_apart(file: Path, folder: Path, place: str) -> None:
    """Have cuobjdump put the cubins of the file into the folder."""
    tool = container_reader()
    try:
        done = subprocess.run(
            [str(tool.path), "-xelf", "all", str(file)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as problem:
        raise BadContainer(f"{place}: cuobjdump did not end within {LIMIT_S:g} s: is the file whole?") from problem
    except OSError as problem:
        raise ToolchainMissing(f"{tool.path} does not run ({problem})") from problem
    if done.returncode and not any(words in done.stdout for words in _NOTHING_THERE):
        reason = (done.stdout.strip().splitlines() or ["no reason given"])[-1].rpartition(" : ")[2]
        reason = reason.replace(f" in '{file}'", "")
        raise BadContainer(f"{place}: cuobjdump {tool.version} cannot read it: {reason}")


# --- wheels and files by themselves --------------------------------------------------------------


def group_of(file: Path) -> str:
    """What all builds of the file are called: of a wheel its project, else the file's name."""
    wheel = _WHEEL.match(file.name)
    return wheel["project"] if wheel is not None else stable_name(file.name)


def stable_name(name: str) -> str:
    """``cupy/cuda/cub.so`` for ``cupy/cuda/cub.cpython-312-x86_64-linux-gnu.so``."""
    return _REPAIRED.sub("", _TAG.sub("", name))


def built_files(file: Path, folder: Path, skip: Sequence[str] = ()) -> Iterator[BuiltFile]:
    """What holds cubins in ``file``, a wheel or one that may hold them itself; they lie in the ``folder``.

    Of a wheel, files whose names match a pattern of ``skip`` are left out.
    Raises ``BadContainer`` with the reason where nothing can be read, and ``ToolchainMissing``.
    """
    found = 0
    try:
        if not file.is_file():
            raise BadContainer(f"{file}: {'it is a folder: name the files in it' if file.is_dir() else 'no such file'}")
        if not file.stat().st_size:
            raise BadContainer(f"{file}: it is empty")
        with file.open("rb") as opened:
            is_wheel = opened.read(_HEAD).startswith(_ZIP)
        unpacked = _members(file, folder, skip) if is_wheel else [("", file)]
        for number, (name, path) in enumerate(unpacked):
            into = folder / f"cubins{number}"
            into.mkdir()
            built = _built(name, path, into, name or file.name)
            if built.cubins or built.problem:
                found += 1
                yield built
    except OSError as problem:
        raise BadContainer(f"{file}: cannot be read: {problem.strerror or problem}") from problem
    except _UNZIPPING as problem:
        raise BadContainer(f"{file}: this wheel cannot be unpacked: {problem}") from problem
    if not found:
        raise BadContainer(
            f"{file}: there is no machine code for GPUs in it; a library without any has no need of an audit, and one "
            "of PTX alone is compiled by the driver that loads it"
        )


def _built(name: str, path: Path, into: Path, place: str) -> BuiltFile:
    try:
        return BuiltFile(stable_name(name), extracted(path, into, place))
    except BadContainer as problem:
        return BuiltFile(stable_name(name), [], str(problem))


def _members(file: Path, folder: Path, skip: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Names and paths of a wheel's files that may hold cubins; bare cubins alone stay when the next one comes."""
    with zipfile.ZipFile(file) as wheel:
        members = [one for one in wheel.infolist() if not one.is_dir() and one.file_size]
        if sum(one.file_size for one in members) > MOST_BYTES:
            raise BadContainer(f"{file}: it unpacks to more than {MOST_BYTES >> 30} GB")
        for number, member in enumerate(members):
            if any(fnmatch.fnmatch(stable_name(member.filename), pattern) for pattern in skip):
                continue
            with wheel.open(member) as content:
                head = content.read(_HEAD)
                if not begins_as_container(head):
                    continue
                path = folder / f"member{number}"
                with path.open("wb") as unpacked:
                    unpacked.write(head)
                    shutil.copyfileobj(content, unpacked, 1 << 20)
            yield member.filename, path
            if not is_cubin(head):  # it is its own only one
                path.unlink()
