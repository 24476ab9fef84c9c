"""Source lines of a kernel's instructions, for explanations: out of its own line table, or of one made for that.

A kernel is compiled without line information.  To explain it, it is compiled once more with it, and its lines count if
the machine code is the same: no record, identity or timed kernel depends on line information.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import BadCubin, CompileProblem
from pytest_gpuperf.compile.compiler import compile_for
from pytest_gpuperf.compile.machine_code.line_table import Origin, SourceLine, line_table
from pytest_gpuperf.compile.source import LINE_INFO, KernelSource
from pytest_gpuperf.compile.warp_model.estimate import KernelCode
from pytest_gpuperf.model.evidence import StaticProfile

Listings = Mapping[tuple[str, str], "Listing"]
"""Sources by SHA-256 of the cubin and symbol of the kernel."""
NO_LISTINGS: Listings = MappingProxyType({})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of packages: a line there is nobody's own."""
_LIBRARIES = ("crt/host_defines.h", "cmath")
"""Below a folder that has one of these headers are those of CUDA or of the C++ library, whichever compiler has them."""


class Listing(NamedTuple):
    """Where a kernel is written."""

    source: KernelSource
    test: Path
    """The test file, for a source that stands in it."""


def lines_of(
    code: KernelCode, profile: StaticProfile, listing: Listing | None, root: Path, cache: CompileCache | None
) -> Mapping[int, SourceLine]:
    """The user's own line of each instruction, by address; files relative to ``root`` where they lie below.

    Of a function that is inlined it is the innermost line outside headers of libraries and installed packages.  Empty
    without line information, and where the compiler makes other machine code today.
    """
    with contextlib.suppress(CompileProblem):
        table = line_table(code.cubin, code.symbol)
        if not table and listing is not None:
            lined = _with_lines(listing.source, code.arch, profile, cache)
            table = line_table(lined, code.symbol)
        found = {origin: _own_line(origin, listing, root) for origin in set(table.values())}
        return {address: line for address, origin in table.items() if (line := found[origin]) is not None}
    return {}


def _with_lines(source: KernelSource, arch: str, profile: StaticProfile, cache: CompileCache | None) -> bytes:
    """The cubin with line information.  Raises ``BadCubin`` for other machine code, and as ``compile_kernel``."""
    lined = dataclasses.replace(source, options=(*source.options, LINE_INFO))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test has had them
        made = compile_for(lined, [arch], cache, {profile.code_hash: profile})[arch]
    if made.profile.code_hash != profile.code_hash:
        raise BadCubin("the compiler made other machine code with line information")
    return made.cubin


def _own_line(origin: Origin, listing: Listing | None, root: Path) -> SourceLine | None:
    for file, line in origin:
        if listing is not None and file.endswith(listing.source.file):
            path, begin = (listing.source.path, 1) if listing.source.path is not None else _in_test(listing)
            return None if path is None else SourceLine(_shown(path, root), line + begin - 1)
        path = Path(file)
        of_library = any((folder / name).is_file() for folder in path.parents for name in _LIBRARIES)
        if _INSTALLED.isdisjoint(path.parts) and not of_library:
            return SourceLine(_shown(path, root), line)
    return SourceLine(_shown(Path(origin[-1].file), root), origin[-1].line)


def _in_test(listing: Listing) -> tuple[Path | None, int]:
    """The test file and the line at which the source begins there; None where it is not there as it is."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        before, found, _ = listing.test.read_text(encoding="utf-8").partition(listing.source.text)
        if found:
            return listing.test, before.count("\n") + 1
    return None, 1


def _shown(path: Path, root: Path) -> str:
    full, root = path.resolve(), root.resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else str(path)
