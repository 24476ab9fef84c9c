"""Source to compile: one CUDA text, one kernel of it, the user's options.

Options are passed on as users write them.  Those that lead past static evidence are refused.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from pytest_gpuperf.compile.compile_errors import BadOption

NVRTC, NVCC = "nvrtc", "nvcc"
"""Names of the compilers."""
DEFAULTS = ("--std=c++17", "--ftz=true", "--device-as-default-execution-space")
"""Options that CuPy 14 gives a RawKernel: the machine code judged is the one that runs.  The user's come after them."""

LINE_INFO = "-lineinfo"
_NAMING_FILES = frozenset({LINE_INFO, "--generate-line-info", "-G", "--device-debug"})
"""Options of NVRTC and of nvcc with which the machine code names the files that it comes from."""
VERBOSE_ASSEMBLER = "--ptxas-options=-v"
"""Makes the log tell spills; changes no machine code."""

INCLUDE = re.compile(r"(?:-I|--include-path|-isystem|--system-include)\s*=?\s*(.*)", re.DOTALL)
PRE_INCLUDE = re.compile(r"(?:-include|--pre-include)\s*=?\s*(.*)", re.DOTALL)
"""Options with a folder or a header, which may be the next item: their first group is empty then."""

_REFUSED = {
    "arch gpu-architecture gencode generate-code code gpu-code": "arch= and --gpuperf-arch choose the architecture",
    "rdc relocatable-device-code dc device-c dw device-w dlto dlink-time-opt": "the plugin reads linked machine code",
    "optf options-file pch use-pch": "the compile cache does not see the file",
    "o output-file time": "the plugin chooses the output files",
    "G device-debug": "it switches optimisation off; for line numbers use -lineinfo",
}
_NAME = re.compile(r"--?([A-Za-z][\w-]*)(?!.*=false)")

NOWHERE = "<source>"
"""Folder that the compiler gets as the source's.  It looks for ``#include "..."`` in that folder before any
other, so it must not be a real one: with a bare file name it would be whatever folder the process runs in."""


@dataclasses.dataclass(frozen=True)
class KernelSource:
    """One kernel of one CUDA source."""

    text: str
    """The source itself; ``path`` is never read."""
    name: str
    """Name of an ``extern "C"`` kernel or of a non-template ``__global__`` function; ``copy<float>`` for a template."""
    path: Path | None = None
    """File of the text: names it in errors, and its folder is searched for headers."""
    options: tuple[str, ...] = ()
    """NVRTC options as CuPy users write them: ``-DTILE=32``, ``-I``, ``--use_fast_math``, ..."""
    name_expression: str | None = None
    """C++ expression that names a template's instance, if ``name`` is not that expression."""
    headers: tuple[Path, ...] = ()
    """Folders, or header files whose folders, are searched for headers too."""
    compiler: str = NVRTC
    """Whose ``options`` they are."""

    @property
    def expression(self) -> str | None:
        """The name expression to give the compiler; None for a kernel that is no template."""
        if self.name_expression is not None:
            return self.name_expression
        return self.name if "<" in self.name else None

    @property
    def file(self) -> str:
        """Name of the file for the compiler (``__FILE__``): the same wherever the project lies."""
        return f"{NOWHERE}/{self.path.name if self.path is not None else 'inline.cu'}"

    @property
    def place(self) -> str:
        """Name of the file in errors."""
        return str(self.path) if self.path is not None else "inline source"

    def check_options(self) -> None:
        """Raises ``BadOption`` for an option that leads past what static evidence is read from."""
        for option in self.options:
            if re.search(r"\s--?[A-Za-z]", option):
                raise BadOption(f"compiler option {option!r} is several: write options={option.split()}")
            name = _NAME.match(option)
            for names, why in _REFUSED.items():
                if name is not None and name[1] in names.split():
                    raise BadOption(f"compiler option {option!r} cannot be used here: {why}")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The options, after those that the compiler gets by default."""
        return (*(DEFAULTS if self.compiler == NVRTC else ()), *self.options)

    @property
    def all_options(self) -> tuple[str, ...]:
        """With the folders of headers, in the order in which they are searched."""
        first, last = ([f"--include-path={one}" for one in of] for of in (self.own_folder, self.header_folders))
        return (*first, *self.chosen, *last)

    @property
    def own_folder(self) -> tuple[Path, ...]:
        """The source's folder, searched for headers first; nothing for a source without a file."""
        return () if self.path is None else (self.path.parent.absolute(),)

    @property
    def folders(self) -> tuple[Path, ...]:
        """All that are searched for headers, in order."""
        return (*self.own_folder, *map(Path, values(INCLUDE, self.options)), *self.header_folders)

    @property
    def named_folders(self) -> list[str]:
        """Those that the machine code names: all, or none without line information."""
        return list(map(str, self.folders)) if _NAMING_FILES.intersection(self.options) else []

    @property
    def included_first(self) -> list[str]:
        """Headers that options name."""
        return values(PRE_INCLUDE, self.options)

    @property
    def header_folders(self) -> tuple[Path, ...]:
        """Folders that ``headers`` adds, searched after those of ``-I`` options."""
        given = (header.parent if header.is_file() else header for header in self.headers)
        return tuple(dict.fromkeys(folder.absolute() for folder in given))


def hash_of_source(text: str) -> str:
    """The first 128 bits of the SHA-256: it tells a changed source from a changed compiler, and proves nothing."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"
    |"(?:\\.|[^"\\\n])*"
    |'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)
_LINE_MATTERS = re.compile(r"__LINE__|\bassert\b|#\s*line\b")


@functools.lru_cache(maxsize=256)
def without_comments(text: str) -> str:
    """The text without comments, blank lines and spaces at the ends of lines: a comment makes no other source of it.

    One that may ask for the number of a line, as ``assert`` does, stays as it is: there a comment is a change.
    """
    if _LINE_MATTERS.search(text):
        return text
    bare = _TOKEN.sub(lambda found: " " if found["comment"] else found[0], text)
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())


def values(kind: re.Pattern[str], options: Sequence[str]) -> list[str]:
    """What options of that ``kind`` name, in order."""
    items = iter(options)
    named = (kind.fullmatch(item) for item in items)
    return [found[1] or next(items, "") for found in named if found is not None]


def without_folders(options: Sequence[str]) -> list[str]:
    """The options less include folders: what two machines have in common."""
    items = iter(options)
    kept = []
    for item in items:
        found = INCLUDE.fullmatch(item)
        if found is None:
            kept.append(item)
        elif not found[1]:
            next(items, None)
    return kept
