"""Kernels that the CuTe DSL has compiled: their machine code, out of what ``cute.compile`` returned.

Read by what it has, as nvidia-cutlass-dsl 4.6 to 4.8 make it.  Its host function forms grid, block and parameters
(structures of an address and the extents that are not constant), so how it is launched is seen when it is launched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pytest_gpuperf.compile.adapters.handed import Handed, library
from pytest_gpuperf.compile.compile_errors import UnsupportedKernel
from pytest_gpuperf.compile.machine_code.cubin import read_cubin

_KEEP = 'cute.compile(..., options="--keep-cubin --dump-dir FOLDER"), with a FOLDER that is there'
_SYMBOL = re.compile(r"kernel_cutlass_(.+?)(?:_(?:tensor|ptr|Tiled|Copy|Ptr|None|object|Shape|Layout)\S*)?_\d+")


def read_cute(compiled: Any, symbol: str = "", name: str = "") -> Handed:
    """The kernel by architecture, out of one or several values of ``cute.compile``.

    ``symbol`` names one kernel where the function launches several.  Raises ``UnsupportedKernel``, ``BadCubin``.
    """
    several = compiled if compiled and isinstance(compiled, Sequence) and not isinstance(compiled, str) else (compiled,)
    cubins: dict[str, list[bytes]] = {}
    symbols = [symbol] if symbol else []
    for one in several:
        cubin = getattr(one, "__cubin__", None)
        if not isinstance(cubin, bytes) or not cubin:  # a text is the path of a file that it could not write
            raise UnsupportedKernel(
                f"from_cute takes what cute.compile(...) returned with its machine code, not {type(one).__name__} "
                f"with {cubin!r}: {_KEEP}"
            )
        found = read_cubin(cubin)
        cubins[found.arch] = [cubin]
        symbols += found.kernels
    called = readable(symbols[0])
    return Handed(
        cubins, symbol, f"{called}, compiled by the CuTe DSL", name=name or called,
        compiler=library("cutlass-dsl", "nvidia-cutlass-dsl"),
    )  # fmt: skip


def readable(symbol: str) -> str:
    """``add`` for ``kernel_cutlass_add_tensorptrf32gmemo1_0``; a symbol of another form is left as it is."""
    found = _SYMBOL.fullmatch(symbol)
    return found[1] if found else symbol
