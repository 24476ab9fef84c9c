"""Options of the compilers, passed on as users write them.  Those that lead past static evidence are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_gpuperf.compile.compile_errors import BadOption

DEFAULTS = ("--std=c++17", "--ftz=true", "--device-as-default-execution-space")
"""Options that CuPy 14 gives a RawKernel: the machine code judged is the one that runs.  The user's come after them."""

VERBOSE_ASSEMBLER = "--ptxas-options=-v"
"""Makes the log tell spills; changes no machine code."""

INCLUDE = re.compile(r"(?:-I|--include-path|-isystem|--system-include)\s*=?\s*(.*)", re.DOTALL)
PRE_INCLUDE = re.compile(r"(?:-include|--pre-include)\s*=?\s*(.*)", re.DOTALL)
"""Options with a folder or a header, which may be the next item: their first group is empty then."""

_REFUSED = {
    "arch gpu-architecture gencode generate-code code gpu-code": "arch= and --gpuperf-arch choose the architecture",
    "rdc relocatable-device-code dc device-c dw device-w dlto dlink-time-opt": "machine code is read whole and linked",
    "optf options-file pch use-pch": "the compile cache does not see the file",
    "o output-file time": "the plugin itself names the files that a compiler writes",
}
_NAME = re.compile(r"--?([A-Za-z][\w-]*)(?!.*=false)")


def accepted(options: Sequence[str]) -> tuple[str, ...]:
    """The ``options`` as they are.  Raises ``BadOption`` for one that leads past what static evidence is read from."""
    for option in options:
        name = _NAME.match(option)
        for names, why in _REFUSED.items():
            if name is not None and name[1] in names.split():
                raise BadOption(f"compiler option {option!r} cannot be used here: {why}")
    return tuple(options)


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
