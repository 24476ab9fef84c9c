"""Files and machine code that a test gives to ``cuda_kernel``: read, or refused with what is there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.compile.adapters.handed import OWN_ARCH, Handed
from pytest_gpuperf.compile.compile_errors import BadContainer
from pytest_gpuperf.compile.machine_code.containers import begins_as_container, cubins_by_arch, is_cubin
from pytest_gpuperf.model.architectures import SPELLINGS
from pytest_gpuperf.stash import CompileLocation

Content = TypeVar("Content", str, bytes)


class MissingSource(FileNotFoundError):
    """The kernel's source, or its cubin, is not where the test says."""


def header_places(location: CompileLocation, headers: Sequence[str | Path]) -> tuple[Path, ...]:
    """Where to look for headers.  A misspelt place would make the compiler search all others and say so."""
    places = tuple(location.folder / header for header in headers)
    for place in places:
        if not place.exists():
            raise MissingSource(
                f"{place}: no such folder or file, named by headers=. Paths are relative to {location.file}."
            )
    return places


def source_text(location: CompileLocation, path_or_source: str | Path) -> tuple[Path | None, str]:
    """The file of a source, if it has one, and its text."""
    if isinstance(path_or_source, str) and ("\n" in path_or_source or "{" in path_or_source):
        return None, path_or_source
    path = location.folder / path_or_source
    return path, _read(path, ".cu", location, lambda: path.read_text(encoding="utf-8-sig"))


def cubin_content(location: CompileLocation, cubin: bytes | str | Path) -> tuple[str, bytes]:
    """What errors call it, and its content."""
    if isinstance(cubin, bytes | bytearray | memoryview):
        return f"a cubin of {len(cubin)} bytes", bytes(cubin)
    if not isinstance(cubin, str | Path):
        raise BadArgument(f"from_cubin takes a cubin's bytes or its path, not {type(cubin).__name__}")
    path = location.folder / cubin
    return str(path), _read(path, ".cubin", location, path.read_bytes)


def _there(folder: Path, kind: str, name: str) -> str:
    """Files of a kind in a folder: those that are called almost as ``name``, else the first."""
    there = sorted(file.name for file in folder.glob(f"*{kind}*"))
    close = difflib.get_close_matches(name, there, n=3) or there[:8]
    return f"there are: {', '.join(close)}" if close else f"the folder {folder} holds no {kind} file"


def _read(path: Path, kind: str, location: CompileLocation, content: Callable[[], Content]) -> Content:
    """``content()``, or what is wrong with the file, with files of its ``kind`` that are there."""
    try:
        return content()
    except FileNotFoundError:
        why = f"no such file; {_there(path.parent, kind, path.name)}. Paths are relative to {location.file}."
    except (OSError, ValueError) as problem:  # the latter of no UTF-8, and of a path that no file can have
        why = f"cannot be read: {problem}{'; save it as UTF-8' * isinstance(problem, UnicodeError)}"
    raise MissingSource(f"{path}: {why}")


# --- machine code ---------------------------------------------------------------------------------------


def handed_cubins(location: CompileLocation, given: Any, symbol: str, name: str, source: str) -> Handed:
    """The cubins that ``from_cubin`` was given: one, those of a container, or one for each architecture.

    Raises ``BadArgument``, ``MissingSource``, ``BadContainer``, ``ToolchainMissing``.
    """
    if isinstance(given, Mapping):
        if unknown := [arch for arch in given if arch not in SPELLINGS] or (not given and ["{}"]):
            raise BadArgument(f"from_cubin: {unknown[0]!r} is no architecture; give {{'sm_90': path}}")
        found = {arch: cubin_content(location, one) for arch, one in given.items()}
        place = ", ".join(place for place, _ in found.values())
        return Handed({arch: [one] for arch, (_, one) in found.items()}, symbol, place, name=name, source=source)
    place, content = cubin_content(location, given)
    cubins: Mapping[str, list[bytes]] = {OWN_ARCH: [content]}
    if begins_as_container(content) and not is_cubin(content):
        cubins = cubins_by_arch(content, place)
    if not cubins:
        raise BadContainer(
            f"{place}: it holds no GPU machine code (PTX alone cannot be gated): compile it for an architecture"
        )
    return Handed(cubins, symbol, place, name=name, source=source)
