"""Kernels that the CuTe DSL has compiled: their machine code, out of what ``cute.compile`` returned.

Read by what it has, as nvidia-cutlass-dsl 4.6 to 4.8 make it; the library is never imported.  Its host function forms
grid, block and parameters (structures of an address and the extents that are not constant), so how it is launched is
seen when it is launched.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pytest_gpuperf.compile.compile_errors import UnsupportedDslKernel
from pytest_gpuperf.compile.machine_code.cubin import read_cubin
from pytest_gpuperf.compile.machine_code.ready_made import ready_made
from pytest_gpuperf.model.evidence import KernelBinary

PLACE = "the cubin of cute.compile"
_KEEP = 'cute.compile(..., options="--keep-cubin --keep-ptx --dump-dir FOLDER")'
_SYMBOL = re.compile(r"kernel_cutlass_(.+?)(?:_(?:tensor|ptr|Tiled|Copy|Ptr|None|object|Shape|Layout)\S*)?_\d+")


class CuteCode(NamedTuple):
    """One kernel for one architecture."""

    binary: KernelBinary
    ptx: str
    """Empty if the library was not told to keep it."""


def read_cute(compiled: Any, symbol: str = "", name: str = "") -> dict[str, CuteCode]:
    """The kernel by architecture, out of one or several values of ``cute.compile``.

    ``symbol`` names one kernel where the function launches several.  Raises ``UnsupportedDslKernel`` and as
    ``ready_made``.
    """
    several = compiled if isinstance(compiled, Sequence) and not isinstance(compiled, str) else (compiled,)
    found: dict[str, CuteCode] = {}
    for code in _codes(several, symbol, name):
        if code.binary.arch in found:
            raise UnsupportedDslKernel(f"from_cute was given two kernels for {code.binary.arch}: give one for each")
        found[code.binary.arch] = code
    if not found:
        raise UnsupportedDslKernel("from_cute was given an empty list: give what cute.compile returned")
    return found


def _codes(several: Sequence[Any], symbol: str, name: str) -> Iterator[CuteCode]:
    for one in several:
        cubin = _cubin(one)
        only = symbol or _only_kernel(cubin)
        compiler = f"cutlass-dsl {_version()}".strip()
        binary = ready_made(cubin, only, place=PLACE, name=name or _readable(only), compiler=compiler)
        yield CuteCode(binary, _text(getattr(one, "__ptx__", None)))


def _cubin(compiled: Any) -> bytes:
    """The bytes that the library kept.  A text in their place is the path of a file that it could not write."""
    if not hasattr(compiled, "__cubin__"):
        raise UnsupportedDslKernel(
            f"from_cute takes what cute.compile(...) returned, not {type(compiled).__name__}: {_KEEP}"
        )
    kept = compiled.__cubin__
    if isinstance(kept, str):
        raise UnsupportedDslKernel(f"{kept}: the CuTe DSL could not write its cubin there: make the folder first")
    if not kept:
        raise UnsupportedDslKernel(f"the CuTe DSL did not keep the cubin of this function: {_KEEP}")
    return bytes(kept)


def _only_kernel(cubin: bytes) -> str:
    symbols = sorted(read_cubin(cubin).kernels)
    if len(symbols) == 1:
        return symbols[0]
    raise UnsupportedDslKernel(
        f"{PLACE} has {len(symbols)} kernels: name one of them, symbol={symbols[0] if symbols else ''!r}; "
        f"it has {', '.join(symbols) or 'none'}"
    )


def _readable(symbol: str) -> str:
    """``add`` for ``kernel_cutlass_add_tensorptrf32gmemo1_0``; a symbol of another form is left as it is."""
    found = _SYMBOL.fullmatch(symbol)
    return found[1] if found else symbol


def _text(ptx: Any) -> str:
    """PTX that the library kept; a path, which has one line, is none."""
    return ptx if isinstance(ptx, str) and "\n" in ptx else ""


def _version() -> str:
    try:
        return importlib.metadata.version("nvidia-cutlass-dsl")
    except importlib.metadata.PackageNotFoundError:
        return ""
