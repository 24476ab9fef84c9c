"""Types of kernel parameters, read for the arguments that they take.  Pure.

Where neither a mangled name nor PTX tells, and for types that are not in the tables below (structures, template
parameters), only sizes are checked.
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
_VECTOR = re.compile(r"(u?)(char|short|int|long|longlong|float|double)([1-4])(_16a|_32a)?")
_COMPLEX = re.compile(r"(?:\w+::)*complex<(float|double)>")
_QUALIFIER = re.compile(r"\b(const|volatile|restrict|__restrict__|__restrict)\b")


class Declared(NamedTuple):
    """A parameter's type, as far as it matters for an argument."""

    is_pointer: bool | None
    """None if it is not known."""
    element: np.dtype[Any] | None = None
    """Type of the value, or of what the pointer points to; None if any is accepted."""
    lanes: int = 1
    """``float4`` has four elements."""
    sign_known: bool = True
    """PTX does not tell ``int`` from ``unsigned int``."""

    def holds(self, given: Any) -> bool:
        """True if an array of ``given`` (a dtype) is what the pointer points to.

        Integers of one size pass for each other, 16-bit types for ``__half``, records of the right size for a vector.
        """
        element = self.element
        if element is None or given == element:
            return True
        if self.lanes > 1 and given.itemsize == self.lanes * element.itemsize:
            return True
        if given.itemsize != element.itemsize:
            return False
        return {element.kind, given.kind} <= set("iub") or (element == np.float16 and given.kind in "iuV")


_IN_PTX = {
    "pointer": Declared(True),
    "64-bit integer or pointer": Declared(None, np.dtype("int64"), sign_known=False),
    **{f"{bits}-bit integer": Declared(False, np.dtype(f"int{bits}"), sign_known=False) for bits in (8, 16, 32)},
}
"""Besides ``float`` and ``double``."""


def declared(name: str | None) -> Declared:
    """Read ``float const*``, ``unsigned int``, ``float4*``, ``float**``, ``32-bit integer``..."""
    if name is None:
        return Declared(None)
    if name in _IN_PTX:
        return _IN_PTX[name]
    if "(" in name or "[" in name:  # a pointer to an array
        return Declared(True)
    words = " ".join(_QUALIFIER.sub(" ", name.replace("*", " ").replace("&", " ")).split())
    stars = name.count("*")
    if stars > 1:
        return Declared(True, np.dtype("uint64"))
    element, lanes = _element(words)
    return Declared(stars == 1, element, lanes)


def _element(words: str) -> tuple[np.dtype[Any] | None, int]:
    if words in _ELEMENTS:
        return np.dtype(_ELEMENTS[words]), 1
    if (found := _VECTOR.fullmatch(words)) is not None:
        unsigned, base, lanes, _ = found.groups()
        base = base.replace("longlong", "long long")
        return np.dtype(_ELEMENTS[f"unsigned {base}" if unsigned else base]), int(lanes)
    if (found := _COMPLEX.fullmatch(words)) is not None:
        return np.dtype(_ELEMENTS[found[1]]), 2
    return None, 1
