"""Source to compile: one CUDA text, one kernel of it, the user's options."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from pathlib import Path

NOWHERE = "<source>"
"""Folder that the compiler is told a source lies in.  It looks for ``#include "..."`` in that folder before any
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

    compiler: str = "nvrtc"
    """``nvrtc`` or ``nvcc``, whose ``options`` they are."""

    @property
    def expression(self) -> str | None:
        """The name expression to give the compiler; None for a kernel that is no template."""
        if self.name_expression is not None:
            return self.name_expression
        return self.name if "<" in self.name else None

    @property
    def program(self) -> str:
        """Name of the file for the compiler (``__FILE__``): the same wherever the project lies."""
        return f"{NOWHERE}/{self.path.name if self.path is not None else 'inline.cu'}"

    @property
    def place(self) -> str:
        """Name of the file in errors."""
        return str(self.path) if self.path is not None else "inline source"

    @property
    def own_folder(self) -> tuple[Path, ...]:
        """The source's folder, searched for headers first; nothing for a source without a file."""
        return () if self.path is None else (self.path.parent.absolute(),)

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
