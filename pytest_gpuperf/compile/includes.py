"""Header files that a source may read, found by reading it: all that it names, whatever ``#if`` surrounds them.

The answer may hold headers that the compiler skips.  Names that no folder holds are part of it too: a file that appears
under such a name changes it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_NAMED = re.compile(
    rb'(?:#[^\S\n]*(?P<how>include_next|include|import)|has_include\w*[^\S\n]*\()[^\S\n]*(?:"([^"\n]+)"|<([^>\n]+)>)',
    re.IGNORECASE,
)
_BY_MACRO = re.compile(rb"^[^\S\n]*#[^\S\n]*(?:include_next|include|import)[^\S\n]+[A-Za-z_]", re.MULTILINE)
_SETTLED_NS = 2_000_000_000
"""A file written more recently may change again without its time stamp showing it."""


class Reference(NamedTuple):
    """One header named by a file."""

    name: str
    quoted: bool
    """``"name"``: the folder of the including file is searched first."""
    every: bool = False
    """``#include_next``: any file of that name on the path may be meant."""


class Scan(NamedTuple):
    """Headers that one file names."""

    digest: str
    """SHA-256 of its content."""
    references: tuple[Reference, ...]
    by_macro: bool
    """It includes a header that a macro names."""


class Dependencies(NamedTuple):
    """All headers that a source may read."""

    found: tuple[tuple[str, str, Path], ...]
    """Name as included, SHA-256 of the content, file."""
    missing: tuple[str, ...]
    """Names that no folder holds."""
    complete: bool
    """False if a macro names a header: then this list may lack a file."""

    def outside(self, folders: Sequence[Path]) -> list[tuple[str, str]]:
        """Names and hashes of the headers that lie in none of the ``folders``, without their paths."""
        roots = tuple(f"{folder}{os.sep}" for folder in folders)
        return sorted({(name, digest) for name, digest, path in self.found if not str(path).startswith(roots)})


def scan(content: bytes) -> Scan:
    """The headers that ``content`` names."""
    joined = content.replace(b"\\\n", b"")
    references = (
        Reference((quoted or angled).decode(errors="surrogateescape"), bool(quoted), how == b"include_next")
        for how, quoted, angled in _NAMED.findall(joined)
    )
    by_macro = _BY_MACRO.search(joined) is not None
    return Scan(hashlib.sha256(content).hexdigest(), tuple(dict.fromkeys(references)), by_macro)


def dependencies(text: bytes, folders: Sequence[Path], before: Sequence[str] = ()) -> Dependencies:
    """Every header reachable from ``text`` through ``folders``; ``before`` names headers included ahead of it."""
    first = scan(text)
    folders = [folder.absolute() for folder in folders]
    pending: list[tuple[Reference, Path | None]] = [(reference, None) for reference in first.references]
    pending += [(Reference(name, True), Path.cwd()) for name in before]
    complete = not first.by_macro
    found: dict[tuple[str, Path], str] = {}
    missing: set[str] = set()
    searched: set[tuple[Reference, Path | None]] = set()
    while pending:
        item = pending.pop()
        if item in searched:
            continue
        searched.add(item)
        scans = _scans(*item, folders)
        name = item[0].name
        if not scans:
            missing.add(name)
        for path, one in scans.items():
            if (name, path) not in found:
                found[name, path] = one.digest
                complete = complete and not one.by_macro
                pending += [(inner, path.parent if inner.quoted else None) for inner in one.references]
    files = tuple((name, digest, path) for (name, path), digest in sorted(found.items()))
    return Dependencies(files, tuple(sorted(missing)), complete)


def _scans(reference: Reference, including: Path | None, folders: Sequence[Path]) -> dict[Path, Scan]:
    """The file that a compiler would take; for ``#include_next`` all those it might."""
    found: dict[Path, Scan] = {}
    for folder in (*(() if including is None else (including,)), *folders):
        path = folder / reference.name
        if path.is_file():
            if ".." in path.parts:  # one place has one name; behind a link ".." leads where opening it does
                path = Path(os.path.realpath(path.parent), path.name)
            found[path] = _scan_file(path)
            if not reference.every:
                break
    return found


def _scan_file(path: Path) -> Scan:
    """Read once per version of the file; the toolkit's headers are hundreds and do not change."""
    status = path.stat()
    if time.time_ns() - status.st_mtime_ns < _SETTLED_NS:
        return scan(path.read_bytes())
    return _scan_version(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8192)
def _scan_version(path: Path, _mtime_ns: int, _size: int) -> Scan:
    return scan(path.read_bytes())
