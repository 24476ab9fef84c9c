"""Files that are already built, one by one: what is in a wheel, or the file itself, with the cubins in it.

Names are those that another build of the same project gives its files: without versions, tags and hashes.
"""

from __future__ import annotations

import fnmatch
import re
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from pytest_gpuperf.compile.compile_errors import BadContainer
from pytest_gpuperf.compile.machine_code.containers import (
    MOST_BYTES,
    FoundCubin,
    begins_as_container,
    extracted,
    is_cubin,
)

_WHEEL = re.compile(r"^(?P<project>[A-Za-z0-9._]+)-[^-]+(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl$")
_TAG = re.compile(r"\.(?:cpython-\d+[a-z]*(?:-[\w-]+)?|abi3|pypy\d+[\w-]*)(?=\.(?:so|pyd)$)")
_REPAIRED = re.compile(r"-[0-9a-f]{8}(?=\.so\b)")
"""What auditwheel puts into the names of libraries that it adds."""
_MOST_MEMBERS = 200_000
_HEAD = 64
_UNZIPPING = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What ``zipfile`` raises of a file that is cut short, encrypted or packed in a way of its own."""


class BuiltFile(NamedTuple):
    """A file with machine code for GPUs."""

    name: str
    """``cupy/cuda/cub.so`` in a wheel; empty of the file itself."""
    cubins: list[FoundCubin]
    problem: str = ""
    """Why they cannot be had, where they cannot."""


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
        for number, (name, path) in enumerate(_candidates(file, folder, skip)):
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


def _candidates(file: Path, folder: Path, skip: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Names in the wheel and paths of what may hold cubins; bare cubins alone stay there when the next one comes."""
    if not file.is_file():
        raise BadContainer(f"{file}: {'it is a folder: name the files in it' if file.is_dir() else 'no such file'}")
    if not file.stat().st_size:
        raise BadContainer(f"{file}: it is empty")
    packed = zipfile.is_zipfile(file)
    if not packed or _is_container_too(file):
        yield "", file
    if not packed:
        return
    with zipfile.ZipFile(file) as wheel:
        members = [one for one in wheel.infolist() if not one.is_dir() and one.file_size]
        if len(members) > _MOST_MEMBERS or sum(one.file_size for one in members) > MOST_BYTES:
            raise BadContainer(f"{file}: it unpacks to more than {MOST_BYTES >> 30} GB or {_MOST_MEMBERS} files")
        twice = next((name for name, count in Counter(one.filename for one in members).items() if count > 1), None)
        if twice is not None:
            raise BadContainer(
                f"{file}: it has {twice} more than once, and which of them is installed is not known: build it anew"
            )
        for number, member in enumerate(members):
            if any(fnmatch.fnmatch(stable_name(member.filename), pattern) for pattern in skip):
                continue
            with wheel.open(member) as content:
                head = content.read(_HEAD)
                if not begins_as_container(head):
                    continue
                place = folder / f"member{number}"
                _unpack(head, content, place)
            yield member.filename, place
            if not is_cubin(head):  # it is its own only one
                place.unlink()


def _is_container_too(file: Path) -> bool:
    """Whether a ZIP archive, which is read from its end, begins as what is loaded as it is."""
    with file.open("rb") as opened:
        return begins_as_container(opened.read(_HEAD))


def _unpack(head: bytes, content: IO[bytes], place: Path) -> None:
    with place.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(content, file, 1 << 20)
