"""Types of kernel parameters, read for the arguments that they take.  Pure.

Where neither a mangled name nor PTX tells, and for structures and template parameters, only sizes are checked.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

_ELEMENTS = {
    "bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "short": "int16",
    "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "__half": "float16", "float": "float32",
    "double": "float64",
}  # fmt: skip
_VECTOR = re.compile(r"(u?)(char|short|int|long|longlong|float|double)[1-4](?:_16a|_32a)?")
_QUALIFIER = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict)\b|[*&]")
_IN_PTX = re.compile(r"(8|16|32|64)-bit integer( or pointer)?")
"""Besides ``float``, ``double`` and ``pointer``: PTX does not tell ``int`` from ``unsigned int``."""


class Declared(NamedTuple):
    """A parameter's type, as far as it matters for an argument."""

    is_pointer: bool | None = None
    """None if it is not known."""
    types: tuple[np.dtype[Any], ...] = ()
    """What the value, or what the pointer points to, may be; empty if anything is accepted."""

    def takes(self, given: np.dtype[Any]) -> bool:
        """Whether a value, or an array, of this type is what the kernel means.

        Integers of one size pass for each other, 16-bit types for ``__half``; records and complex numbers for anything.
        """
        if not self.types or given.kind not in "biuf":
            return True
        kinds = {"f" if one.kind == "f" else "i" for one in (self.types[0], given)}
        return given.itemsize == self.types[0].itemsize and (len(kinds) == 1 or given.itemsize == 2)


def declared(name: str | None) -> Declared:
    """Read ``float const*``, ``unsigned int``, ``float4*``, ``float**``, ``32-bit integer``..."""
    if name is None:
        return Declared()
    if (found := _IN_PTX.fullmatch(name)) is not None:
        return Declared(None if found[2] else False, (np.dtype(f"int{found[1]}"), np.dtype(f"uint{found[1]}")))
    if name == "pointer" or "(" in name or "[" in name:  # of PTX; to an array
        return Declared(True)
    words, stars = " ".join(_QUALIFIER.sub(" ", name).split()), name.count("*")
    if stars > 1:
        return Declared(True, (np.dtype("uint64"),))
    if stars and (vector := _VECTOR.fullmatch(words)) is not None:
        base = vector[2].replace("longlong", "long long")
        words = f"unsigned {base}" if vector[1] else base
    return Declared(stars == 1, (np.dtype(_ELEMENTS[words]),) if words in _ELEMENTS else ())
