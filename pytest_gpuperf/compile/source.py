"""Source to compile: one CUDA text, one kernel of it, the user's options."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from pytest_gpuperf.arguments import BadArgument

NOWHERE = "<source>"
"""Folder that the compiler is told a source lies in.  It looks for ``#include "..."`` in that folder before any
other, so it must not be a real one: with a bare file name it would be whatever folder the process runs in."""

_NO_TEXT = re.compile("[\\0\ud800-\udfff]")
"""A null character, at which a compiler stops reading, and halves of characters, which no file has."""


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

    def __post_init__(self) -> None:
        """Raise ``BadArgument`` for what would reach the compiler cut short, or not at all."""
        given = (
            ("the source", self.text), ("name", self.name), ("name_expression", self.name_expression or ""),
            *(("options", str(option)) for option in self.options),
        )  # fmt: skip
        for what, text in given:
            if found := _NO_TEXT.search(text):
                where = f" in line {text.count(chr(10), 0, found.start()) + 1}" if "\n" in text else ""
                what = f"{self.place}: {what} holds {found[0]!r}{where}"
                raise BadArgument(f"{what}, which ends or breaks it for the compiler: remove it")

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
