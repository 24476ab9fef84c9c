"""Files that a test names for ``cuda_kernel``: sources, headers and cubins, read or refused with what is there."""

from __future__ import annotations

import codecs
import difflib
import glob
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.context.shared_fixtures import Site

Content = TypeVar("Content", str, bytes)


class MissingSource(FileNotFoundError):
    """The kernel's source, or its cubin, is not where the test says."""


def header_places(site: Site, headers: Sequence[str | Path]) -> tuple[Path, ...]:
    """Where to look for headers.  A misspelt place would make the compiler search all others and say so."""
    places = tuple(site.folder / header for header in headers)
    for place in places:
        if not place.exists():
            raise MissingSource(
                f"{place}: headers= names it, and there is no such folder or file. Paths are relative to {site.file}."
            )
    return places


def source_text(site: Site, path_or_source: str | Path) -> tuple[Path | None, str]:
    """The file of a source, if it has one, and its text."""
    if isinstance(path_or_source, str) and ("\n" in path_or_source or "{" in path_or_source):
        return None, path_or_source
    path = site.folder / path_or_source
    return path, _read(path, ".cu", site, lambda: path.read_text(encoding="utf-8-sig"))


def cubin_content(site: Site, cubin: bytes | str | Path) -> tuple[str, bytes]:
    """What errors call it, and its content."""
    if isinstance(cubin, bytes | bytearray | memoryview):
        return f"a cubin of {len(cubin)} bytes", bytes(cubin)
    if not isinstance(cubin, str | Path):
        raise BadArgument(f"from_cubin takes a cubin's bytes or its path, not {type(cubin).__name__}")
    path = site.folder / cubin
    return str(path), _read(path, ".cubin", site, path.read_bytes)


def _encoding(content: bytes) -> str:
    """What a text that is no UTF-8 most likely is in: UTF-16 tells by its mark, as editors of Windows write it."""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if marked and len(content) % 2 == 0 else "latin1"


def _hint(path: Path, kind: str, folder: Path) -> str:
    """What is there in place of a file that is not: the place that may be meant, seen from ``folder``, or others."""
    names = path.parts[len(folder.parts) :] if path.is_relative_to(folder) else ()
    from_above = [above.joinpath(*names) for above in folder.parents if names]
    for meant in (*from_above, *sorted(folder.glob(f"*/{glob.escape(path.name)}"))):
        if meant.is_file():
            return f"{Path(os.path.relpath(meant, folder)).as_posix()} is there"
    return _in_folder(path.parent, kind, path.name) if path.parent.is_dir() else f"there is no folder {path.parent}"


def _in_folder(folder: Path, kind: str, name: str) -> str:
    """Files of a kind in a folder: those that are called almost as ``name``, else the first."""
    there = sorted(file.name for file in folder.glob(f"*{kind}*"))
    close = difflib.get_close_matches(name, there, n=3) or there[:8]
    return f"there are: {', '.join(close)}" if close else f"the folder {folder} holds no {kind} file"


def _read(path: Path, kind: str, site: Site, content: Callable[[], Content]) -> Content:
    """``content()``, or what is wrong with the file, with files of its ``kind`` that are there."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise MissingSource(f"{path}: cannot be read: it is a pipe or a device, which may never end. Name a file")
    try:
        return content()
    except FileNotFoundError:
        hint = _hint(path, kind, site.folder)
        raise MissingSource(f"{path}: no such file; {hint}. Paths are relative to {site.file}.") from None
    except IsADirectoryError:
        hint = _in_folder(path, kind, "")
        raise MissingSource(
            f"{path}: it is a folder: name a file in it; {hint}. Paths are relative to {site.file}."
        ) from None
    except UnicodeDecodeError as problem:
        old, new = shlex.quote(path.name), shlex.quote(f"{path.stem}_utf8{path.suffix}")
        raise MissingSource(
            f"{path}: cannot be read: {problem}. Save it as UTF-8: "
            f"iconv -f {_encoding(problem.object)} -t utf-8 {old} -o {new}"
        ) from None
    except (OSError, ValueError) as problem:  # the latter of a path that no file can have
        raise MissingSource(f"{path}: cannot be read: {problem}") from None
