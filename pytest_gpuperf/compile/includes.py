"""Header files that a source may read, found by reading it: all that it names, whatever ``#if`` surrounds them.

NVRTC does not say what it read.  The answer may hold headers that the compiler skips.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_NAMED = re.compile(
    rb'(?:#[^\S\n]*(?:include|import|include_next)|has_include\w*[^\S\n]*\()[^\S\n]*(?:"([^"\n]+)"|<([^>\n]+)>)',
    re.IGNORECASE,
)
_BY_MACRO = re.compile(rb"^[^\S\n]*#[^\S\n]*(?:include_next|include|import)[^\S\n]+[A-Za-z_]", re.MULTILINE)


class Scan(NamedTuple):
    """Headers that one file names."""

    digest: str
    """SHA-256 of its content."""
    names: tuple[tuple[str, bool], ...]
    """With whether it is ``"name"``: the folder of the including file is searched first."""
    by_macro: bool
    """It includes a header that a macro names."""


class Headers(NamedTuple):
    """All headers that a source may read."""

    found: tuple[tuple[str, str, Path], ...]
    """Name as included, SHA-256 of the content, file."""
    complete: bool
    """False if a macro names a header: then this list may lack a file."""

    def outside(self, folders: Sequence[Path]) -> list[tuple[str, str]]:
        """Names and hashes of the headers that lie in none of the ``folders``, without their paths."""
        roots = tuple(f"{folder}{os.sep}" for folder in folders)
        return sorted({(name, digest) for name, digest, path in self.found if not str(path).startswith(roots)})


def scan(content: bytes) -> Scan:
    """The headers that ``content`` names."""
    joined = content.replace(b"\\\n", b"")
    names = (((quoted or angled).decode(errors="surrogateescape"), bool(quoted))
             for quoted, angled in _NAMED.findall(joined))  # fmt: skip
    by_macro = _BY_MACRO.search(joined) is not None
    return Scan(hashlib.sha256(content).hexdigest(), tuple(dict.fromkeys(names)), by_macro)


def headers_of(text: bytes, folders: Sequence[Path], before: Sequence[str] = ()) -> Headers:
    """Every header reachable from ``text`` through ``folders``; ``before`` names headers included ahead of it."""
    first = scan(text)
    folders = [folder.absolute() for folder in folders]
    pending: list[tuple[str, Path | None]] = [(name, None) for name, _ in first.names]
    pending += [(name, Path.cwd()) for name in before]
    found: dict[tuple[str, Path], Scan] = {}
    searched = set()
    while pending:
        name, including = item = pending.pop()
        if item in searched:
            continue
        searched.add(item)
        path = _file(name, [including, *folders] if including else folders)
        if path is None or (name, path) in found:
            continue
        status = path.stat()
        one = found[name, path] = _scan_version(path, status.st_mtime_ns, status.st_size)
        pending += [(inner, path.parent if quoted else None) for inner, quoted in one.names]
    files = tuple((name, one.digest, path) for (name, path), one in sorted(found.items()))
    return Headers(files, not any(one.by_macro for one in (first, *found.values())))


def _file(name: str, folders: Sequence[Path]) -> Path | None:
    """The first that there is; one place has one name, and behind a link ".." leads where opening it does."""
    path = next(filter(Path.is_file, (folder / name for folder in folders)), None)
    return path if path is None or ".." not in path.parts else Path(os.path.realpath(path.parent), path.name)


@functools.lru_cache(maxsize=8192)
def _scan_version(path: Path, _mtime_ns: int, _size: int) -> Scan:
    """Read once per version of the file; the toolkit's headers are hundreds and do not change."""
    return scan(path.read_bytes())
