"""From the name a user writes to the symbol a cubin holds, and from a symbol to its C++ types.

The demangler is that of the machine's C++ runtime, where there is one; plain names are read without it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re
from collections.abc import Callable, Iterable

from pytest_gpuperf.compile.compile_errors import UnknownKernel

_RUNTIMES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib")
_LENGTH = re.compile(r"\d+")
_INTERNAL = re.compile(r"\b_INTERNAL_[0-9a-f]+_\w+::")
"""What nvcc puts before names that are of one file alone; it differs from run to run."""


def demangle(symbol: str) -> str | None:
    """``tile<3>(float*)`` for ``_Z4tileILi3EEvPf``; None for a C name, or if this machine has no demangler."""
    if not symbol.startswith("_Z"):
        return None
    demangler = _demangler()
    return demangler(symbol) if demangler is not None else None


def parameter_types(symbol: str) -> tuple[str, ...] | None:
    """C++ types of a kernel's parameters (``float const*``); None where the symbol does not tell."""
    full = demangle(symbol)
    if full is None or not full.endswith(")"):
        return None
    inside = full[_opening(full) + 1 : -1]
    return tuple(part.strip() for part in _top_level_parts(inside))


def readable(symbol: str) -> str:
    """Name of a kernel for people: its C++ name without parameters, or the symbol."""
    full = demangle(symbol)
    if full is not None and full.endswith(")"):
        full = _INTERNAL.sub("", full)
        return full[: _opening(full)].removeprefix("void ")  # a demangled template carries its return type
    return plain_name(symbol)


def plain_name(symbol: str) -> str:
    """``ns::copy`` for ``_ZN2ns4copyEPf``, ``copy`` for ``_Z4copyPf``; other symbols are left as they are."""
    if not symbol.startswith("_Z"):
        return symbol
    rest = symbol[2:].removeprefix("L")
    nested = rest.startswith("N")
    rest = rest.removeprefix("N")
    parts: list[str] = []
    while (nested or not parts) and (length := _LENGTH.match(rest)):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    is_template = rest.startswith("I") or (nested and not rest.startswith("E"))
    return symbol if not parts or is_template else "::".join(parts)


def find_kernel(name: str, symbols: Iterable[str], place: str) -> str:
    """The symbol meant by a symbol, a qualified name, its unambiguous last part or a name with its parameters.

    Raises ``UnknownKernel``.
    """
    available = list(symbols)
    if name in available:
        return name
    matches: list[str] = []
    for spelt in (plain_name, _last_part, readable, _with_parameters):
        matches = matches or [symbol for symbol in available if spelt(symbol) == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        overloads = "".join(f"\n    {one}" for one in sorted(map(_with_parameters, matches)))
        hint = f"the name is shared by several kernels: give one with its parameters, as it stands here{overloads}"
        raise UnknownKernel(name, place, None, hint)
    hint = "an instance of a template is named with its arguments, as in copy<float>"
    raise UnknownKernel(name, place, [readable(symbol) for symbol in available], hint)


def _last_part(symbol: str) -> str:
    return plain_name(symbol).rpartition("::")[2]


def _with_parameters(symbol: str) -> str:
    """``ns::copy(float*, int)``: a symbol in C++, without what differs from run to run; where it is none, itself."""
    return _INTERNAL.sub("", demangle(symbol) or symbol)


@functools.cache
def _demangler() -> Callable[[str], str | None] | None:
    for library in (*_RUNTIMES, ctypes.util.find_library("stdc++")):
        if library is None:
            continue
        try:
            loaded = ctypes.CDLL(library)
            function = loaded.__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
        return functools.partial(_call_demangler, function)
    return None


def _call_demangler(function: Callable[..., int | None], symbol: str) -> str | None:
    status = ctypes.c_int()
    address = function(symbol.encode(), None, None, ctypes.byref(status))
    if not address:
        return None
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(address))


def _opening(full: str) -> int:
    """Position at which the parameter list of a demangled function opens."""
    depth = 0
    for index in range(len(full) - 1, -1, -1):
        depth += (full[index] == ")") - (full[index] == "(")
        if depth == 0:
            return index
    return 0


def _top_level_parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]] if text.strip() else []
