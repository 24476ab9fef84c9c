"""From the name a user writes to the symbol a cubin holds, and from a symbol to its C++ name and types.

The demangler is that of the machine's C++ runtime; without one, C++ names stay as the machine code has them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
from collections.abc import Iterable
from typing import Any

from pytest_gpuperf.compile.compile_errors import UnknownKernel

_RUNTIMES = ("libstdc++.so.6", "libc++abi.so.1")
_INNERMOST = re.compile(r"<[^<>]*>")
_INTERNAL = re.compile(r"\b_INTERNAL_[0-9a-f]+_\w+::")
"""What nvcc puts before names that are of one file alone; it differs from run to run."""


def demangle(symbol: str) -> str | None:
    """``tile<3>(float*)`` for ``_Z4tileILi3EEvPf``; None for a C name, or if this machine has no demangler."""
    if not symbol.startswith("_Z"):
        return None
    function = _demangler()
    address = function(symbol.encode(), None, None, None) if function is not None else None
    if not address:
        return None
    try:
        return ctypes.string_at(address).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(address))


def parameter_types(symbol: str) -> tuple[str, ...] | None:
    """C++ types of a kernel's parameters (``float const*``); None where the symbol does not tell."""
    full = demangle(symbol)
    if full is None or not full.endswith(")"):
        return None
    inside = full[_opening(full) + 1 : -1]
    return tuple(part.strip() for part in _top_level_parts(inside))


def readable(symbol: str) -> str:
    """Name of a kernel for people: its C++ name without parameters, or the symbol."""
    full = _with_parameters(symbol)
    # a demangled template carries its return type
    return full[: _opening(full)].removeprefix("void ") if full.endswith(")") else full


def short_name(symbol: str) -> str:
    """``softmax_warp_forward``: the kernel's own name, without namespaces and template arguments."""
    name, was = readable(symbol), ""
    while name != was:
        name, was = _INNERMOST.sub("", name), name
    return name.rpartition("::")[2] or symbol


def library_name(symbol: str) -> str:
    """``readable``, without the namespaces that libraries put their version into."""
    return re.sub("(CUB|THRUST)_NS::", "", readable(symbol))


def find_kernel(name: str, symbols: Iterable[str], place: str) -> str:
    """The symbol meant by a symbol, a qualified name, its unambiguous last part or a name with its parameters.

    Raises ``UnknownKernel``.
    """
    available = list(symbols)
    if name in available:
        return name
    matches: list[str] = []
    for spelt in (readable, _last_part, _with_parameters):
        matches = matches or [symbol for symbol in available if spelt(symbol) == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        overloads = "".join(f"\n    {one}" for one in sorted(map(_with_parameters, matches)))
        hint = f"several kernels have this name: give one with its parameters, as listed here{overloads}"
        raise UnknownKernel(name, place, None, hint)
    hint = "an instance of a template is named with its arguments, as in copy<float>"
    raise UnknownKernel(name, place, [readable(symbol) for symbol in available], hint)


def named_alike(expression: str, symbols: Iterable[str]) -> str | None:
    """The symbol of the instance of a template that a name expression names; None if it is not exactly one.

    Blanks do not count, nor suffixes of literals: ``copy<4u>`` is ``copy<4>`` to people.
    """

    def bare(name: str) -> str:
        return re.sub(r"(?<=\d)[uUlL]+\b", "", re.sub(r"\s+", "", name)).removeprefix("::")

    found = [symbol for symbol in symbols if bare(readable(symbol)) == bare(expression)]
    return found[0] if len(found) == 1 else None


def _last_part(symbol: str) -> str:
    name = readable(symbol)
    return "" if "<" in name else name.rpartition("::")[2]


def _with_parameters(symbol: str) -> str:
    """``ns::copy(float*, int)``: a symbol in C++, without what differs from run to run; where it is none, itself."""
    return _INTERNAL.sub("", demangle(symbol) or symbol)


@functools.cache
def _demangler() -> Any:
    """``__cxa_demangle`` of the C++ runtime; None on a machine without one."""
    for library in _RUNTIMES:
        with contextlib.suppress(OSError, AttributeError):
            function = ctypes.CDLL(library).__cxa_demangle
            function.restype = ctypes.c_void_p
            function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
            return function
    return None


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


# --- names that builds share ---------------------------------------------------------------------


_NOISY = re.compile(r"(\d+)(?=_GLOBAL__N__|_INTERNAL_|CUB_\d|THRUST_\d)")
"""The length of a part of a mangled name, and how one begins that is not the same in every build."""
_OF_FILE = re.compile(r"_(?:GLOBAL__N_|INTERNAL)_(?:[0-9a-f]{8}_)?(\d+)_")
"""What precedes the name of a file, whose length it tells."""
_OF_LIBRARY = re.compile(r"(CUB|THRUST)_\d[\w]*")
_NUMBERED = re.compile(r"(Ut|E)\d+_")
"""Ends of what is numbered in the order of its file: unnamed types and lambdas (``UlfE0_``)."""
_NUMBERED_TAG = re.compile(r"(__nv_h?dl_(?:trailing_return_)?tagI.*?Lj)\d+(?=E)")
"""Of the type of a lambda that the host passes to a kernel."""


def stable_symbol(symbol: str) -> str:
    """The symbol without hashes of paths and versions of libraries: still one that can be demangled."""
    parts, at = [], 0
    while found := _NOISY.search(symbol, at):
        digits, start = found[1], found.end()
        sizes = (digits[first:] for first in range(len(digits)))  # those before may end the part before
        size = next((one for one in sizes if one[0] != "0" and start + int(one) <= len(symbol)), "")
        end = start + int(size or 0)
        stable = _stable_part(symbol[start:end])
        parts += [symbol[at : start - len(size)], str(len(stable)) if size else "", stable]
        at = end
    return "".join([*parts, symbol[at:]])


def kernel_key(symbol: str) -> str:
    """What the kernels of one source have in common, however it numbers its lambdas: no symbol, only a key."""
    stable = _NUMBERED_TAG.sub(r"\1", stable_symbol(symbol))
    has_numbered = stable.startswith("_Z") and ("Ul" in stable or "Ut" in stable)
    return _NUMBERED.sub(r"\1_", stable) if has_numbered else stable


def _stable_part(name: str) -> str:
    library = _OF_LIBRARY.fullmatch(name)
    if library is not None:
        return f"{library[1]}_NS"
    of_file = _OF_FILE.match(name)
    if of_file is None:
        return name
    return f"_GLOBAL__N__{name[of_file.end() : of_file.end() + int(of_file[1][:4])]}"
