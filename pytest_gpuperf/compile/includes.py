"""Header files that a source depends on, found by reading, not by compiling.

``#include`` lines are followed whatever ``#if`` surrounds them, so the answer may hold files that the compiler skips.
It never lacks one that the compiler reads, unless a macro spells its name, which is reported.  Names that no
folder holds are part of it too: a file that appears under such a name changes it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import CompileError

_DIRECTIVE = re.compile(
    rb"""(?:^|\*/)[^\S\n]*(?:\#|%:|\?\?=)(?:[^\S\n]|/\*(?s:.)*?\*/)*(include_next|include|import)\b[^\S\n]*"""
    rb"""(?:"([^"\n]+)"|<([^>\n]+)>|(\S[^\n]*))""",
    re.MULTILINE,
)
"""At the beginning of a line, or behind the end of a comment of several lines."""
_ASKING = r"\w*(?:has_include|HAS_INCLUDE)\w*"
_PROBE = re.compile(
    rf"""(?P<about>\bdefine[^\S\n]+{_ASKING}\((?P<x>\w+)\)[^\S\n]*__has_include(?:_next)?\((?P=x)\)"""
    rf"""|\b(?:defined[^\S\n]*\(?|(?:el)?ifn?def|define|undef)[^\S\n]*{_ASKING})"""
    rf"""|\b{_ASKING}[^\S\n]*(?:\([^\S\n]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>))?""".encode()
)
"""``__has_include``, or a macro for it that has that in its name, as the CUDA headers' has; or a line about these."""
_CONTINUATION = re.compile(rb"\\\r?\n")
_TOKEN = re.compile(
    rb"""(?P<comment>//[^\n]*|/\*(?s:.)*?\*/)|/\*(?s:.)*|\b(?:include|include_next|import)[^\S\n]*<[^>\n]*>"""
    rb"""|(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\((?s:.)*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"?"""
    rb"""|'(?:\\.|[^'\\\n])*'?|\b\d(?:'?\w)+"""
)
"""What may hold the beginning of a comment without being one, and comments; one that has no end is none."""

_SETTLED_NS = 2_000_000_000
"""A file written more recently may change again without its time stamp showing it."""


class Reference(NamedTuple):
    """One header named by a source."""

    name: str
    quoted: bool
    """``"name"``: the folder of the including file is searched first."""
    every: bool = False
    """``#include_next``: any file of that name on the path may be meant."""


class Scan(NamedTuple):
    """Headers that one file names."""

    digest: str
    references: tuple[Reference, ...]
    opaque: bool
    """It includes something, or asks for it, through a macro, which reading does not resolve."""


class Dependencies(NamedTuple):
    """All headers that a source may read, nearest first."""

    found: tuple[tuple[str, Path, str], ...]
    """Name as included, file, SHA-256 of its content."""
    missing: tuple[str, ...]
    complete: bool
    """False if a header is spelled by a macro or a file cannot be read: then this list may lack a file."""

    @property
    def lacking(self) -> frozenset[str]:
        """Names that no folder holds, wherever they are included from."""
        return frozenset(self.missing) - {name for name, _, _ in self.found}

    def of_user(self, toolkit: Sequence[Path]) -> tuple[tuple[str, str], ...]:
        """Names and hashes of the headers that lie outside the toolkit's folders, without their paths."""
        roots = tuple(f"{folder}{os.sep}" for folder in toolkit)
        own = ((name, digest) for name, path, digest in self.found if not str(path).startswith(roots))
        return tuple(sorted(set(own)))

    def placed(self, toolkit: Sequence[Path]) -> list[tuple[str, str, str]]:
        """``found`` with places as text: those outside the toolkit's folders as seen from the folder above them all.

        So they are the same wherever the project lies.
        """
        roots = tuple(f"{folder}{os.sep}" for folder in toolkit)
        own = [path for _, path, _ in self.found if not str(path).startswith(roots)]
        above = os.path.commonpath([path.parent for path in own]) if own else ""
        return [
            (name, str(path) if str(path).startswith(roots) else os.path.relpath(path, above), digest)
            for name, path, digest in self.found
        ]


def scan_text(content: bytes) -> Scan:
    """The headers that ``content`` names."""
    digest = hashlib.sha256(content).hexdigest()
    joined = _CONTINUATION.sub(b"", content)
    last = max(map(joined.rfind, (b"include", b"import", b"HAS_INCLUDE")))
    if last < 0:
        return Scan(digest, (), False)
    code = _TOKEN.sub(_without_comment, joined[:last] + joined[last:].partition(b"\n")[0])
    references: list[Reference] = []
    opaque = False
    for directive, quoted, angled, other in _DIRECTIVE.findall(code):
        if other:
            opaque = True
        else:
            name = (quoted or angled).decode(errors="surrogateescape")
            references.append(Reference(name, bool(quoted), every=directive == b"include_next"))
    for probe in _PROBE.finditer(code):
        name = probe["quoted"] or probe["angled"]
        if name:
            references.append(Reference(name.decode(errors="surrogateescape"), bool(probe["quoted"])))
    opaque = opaque or (_asks(code) and _asks(_TOKEN.sub(lambda token: b" " if token["comment"] else token[0], code)))
    return Scan(digest, tuple(dict.fromkeys(references)), opaque)


def _asks(code: bytes) -> bool:
    """Whether it asks for a header that is not named there."""
    return any(probe.lastgroup not in ("about", "quoted", "angled") for probe in _PROBE.finditer(code))


def _without_comment(token: re.Match[bytes]) -> bytes:
    """A blank for a comment within a line.

    One of several lines stays: what follows it may be a directive, and an include that it hides is one too many.
    """
    comment = token["comment"]
    return token[0] if comment is None or b"\n" in comment else b" "


def dependencies(text: bytes, folders: Sequence[Path], extra: Sequence[str] = ()) -> Dependencies:
    """Every header reachable from ``text`` through ``folders``; ``extra`` names headers included before it.

    Files that cannot be read count as missing, as they do for the compiler.  Raises ``CompileError`` for a pipe, which
    the compiler would wait for.
    """
    first = scan_text(text)
    folders = [folder.absolute() for folder in folders]
    pending: list[tuple[Reference, Path | None]] = [(reference, None) for reference in first.references]
    pending += [(Reference(name, True, every=True), Path.cwd()) for name in extra]
    complete = not first.opaque
    found: dict[tuple[str, Path], str] = {}
    missing: set[str] = set()
    searched: set[tuple[Reference, Path | None]] = set()
    scans: dict[Path, Scan | None] = {}
    while pending:
        item = pending.pop()
        if item in searched:
            continue
        searched.add(item)
        hits = _candidates(*item, folders)
        name = item[0].name
        if not hits:
            missing.add(name)
        for path in hits:
            if path not in scans:
                scans[path] = _scan_file(path)
            scan = scans[path]
            if scan is None:
                missing.add(name)
                complete = False
            if scan is None or (name, path) in found:
                continue
            found[name, path] = scan.digest
            complete = complete and not scan.opaque
            pending.extend((inner, path.parent if inner.quoted else None) for inner in scan.references)
    files = tuple((name, path, digest) for (name, path), digest in sorted(found.items()))
    return Dependencies(files, tuple(sorted(missing)), complete)


def _candidates(reference: Reference, including: Path | None, folders: Sequence[Path]) -> list[Path]:
    """The file that a compiler would take; for ``#include_next`` all those it might."""
    if Path(reference.name).is_absolute():
        folders = (Path(),)
    beside = () if including is None else (including,)
    paths = (folder / reference.name for folder in (*beside, *folders))
    hits = (_straight(path) for path in paths if _is_header(path))
    return list(hits) if reference.every else list(itertools.islice(hits, 1))


def _is_header(path: Path) -> bool:
    """Whether a file lies there.  Raises ``CompileError`` for a pipe."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    if stat.S_ISFIFO(mode):
        raise CompileError(str(path), None, "a header is to be read from it, and it is a pipe: put a file there", "")
    return stat.S_ISREG(mode)


def _straight(path: Path) -> Path:
    """``path`` without ``..``, which leads from a linked folder to the parent of what is linked, as on opening it."""
    if ".." not in path.parts:
        return path
    done = Path(path.anchor)
    for part in path.parts[1:]:
        if part != "..":
            done /= part
            continue
        while done.is_symlink():
            done = _straight(done.parent / done.readlink())
        done = done.parent
    return done


def _scan_file(path: Path) -> Scan | None:
    try:
        status = path.stat()
        if time.time_ns() - status.st_mtime_ns < _SETTLED_NS:
            return scan_text(path.read_bytes())
        return _scan_version(path, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return None


@functools.lru_cache(maxsize=8192)
def _scan_version(path: Path, _mtime_ns: int, _size: int, _inode: int) -> Scan:
    """Reads a file once per version of it; the toolkit's headers are hundreds and do not change."""
    return scan_text(path.read_bytes())
