"""Headers, flags and variables that nvcc takes into account besides its file, by its options and its environment.

nvcc has the host's compiler read the file, so what that searches counts too.  Its own folders are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import BadOption
from pytest_gpuperf.compile.nvrtc_options import canonical_options

_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_FOLDERS = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
_OF_ITS_PROFILE = ("INCLUDES", "SYSTEM_INCLUDES", "CUDAFE_FLAGS", "PTXAS_FLAGS")
"""What ``nvcc.profile`` adds to, and so takes from the environment."""
VARIABLES = (*_FLAGS, *_FOLDERS, *_OF_ITS_PROFILE, "NVCC_CCBIN")

_INCLUDING = ("--include-path", "--system-include", "--pre-include")
_UNFOLLOWED = re.compile(
    r"--?(?:libdevice-directory|ldir|target-directory|target-dir|qpp-config|dont-use-profile|noprof|forward-unknown-.*)\b"
)
"""Options that lead to files, or that hand others to the host's compiler."""
_PLAIN_OF_HOST = re.compile(r"-(?:[OWwDUgm]|f(?!plugin)|std=|pthread|pedantic|ansi)[^@]*")
"""Options of the host's compiler that have it read no other file."""
_QUOTED = re.compile(r"[\"'\\$`]")


class NvccReads(NamedTuple):
    """Where nvcc looks for headers, and what of its environment decides on what it makes."""

    folders: tuple[Path, ...]
    """In the order in which they are searched."""
    before: tuple[str, ...]
    """Headers that are included before the file."""
    environment: tuple[str, ...]
    """``NAME=value`` of the ``VARIABLES`` that are set."""
    followed: bool
    """False if it may read files besides these."""


def nvcc_reads(
    options: Sequence[str], own: Iterable[Path], last: Iterable[Path], environ: Mapping[str, str]
) -> NvccReads:
    """What canonical ``options`` and ``environ`` have nvcc read; it searches ``own`` before them and ``last`` after."""
    given = {name: environ[name] for name in VARIABLES if environ.get(name)}
    before, after = (_flags(given.get(name, "")) for name in _FLAGS)
    together = (*(before or ()), *options, *(after or ()))
    folders: tuple[str | Path, ...] = (
        *_listed("--include-path", before or ()), *own, *_listed("--include-path", options), *last,
        *_listed("--include-path", after or ()),
        *(folder for name in _FOLDERS if name in given for folder in given[name].split(os.pathsep)),
        *_listed("--system-include", together),
    )  # fmt: skip
    known = before is not None and after is not None and given.keys().isdisjoint(_OF_ITS_PROFILE)
    return NvccReads(
        tuple(Path(folder) for folder in folders), _listed("--pre-include", together),
        tuple(f"{name}={value}" for name, value in given.items()), known and all(map(_is_followed, together)),
    )  # fmt: skip


def _flags(text: str) -> tuple[str, ...] | None:
    """Options in canonical form; None for what only nvcc reads aright."""
    if _QUOTED.search(text):
        return None
    try:
        return canonical_options(text.split(), ())
    except BadOption:
        return None


def _listed(name: str, options: Iterable[str]) -> tuple[str, ...]:
    """Values of an option that takes several, with commas between them."""
    values = (option.removeprefix(f"{name}=") for option in options if option.startswith(f"{name}="))
    return tuple(one for value in values for one in value.split(","))


def _is_followed(option: str) -> bool:
    name, _, value = option.partition("=")
    if name in _INCLUDING:
        return not _QUOTED.search(value)
    if name == "--compiler-options":
        return all(map(_PLAIN_OF_HOST.fullmatch, re.split(r"[\s,]+", value)))
    return not _UNFOLLOWED.match(option)
