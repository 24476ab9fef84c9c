"""NVRTC options as users write them, in one canonical form, on top of CuPy's defaults.

A kernel is compiled as CuPy's ``RawKernel`` would compile it, so that the machine code judged is the one that runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pytest_gpuperf.compile.compile_errors import BadOption

DEFAULTS = ("--std=c++17", "--ftz=true", "--device-as-default-execution-space")
"""Options that CuPy 14 gives a RawKernel, in canonical spelling."""

VERBOSE_ASSEMBLER = "--ptxas-options=-v"
"""Makes the log tell spills; changes no machine code."""

_ALSO_WITH_ONE_DASH = (
    "std maxrregcount ftz prec-sqrt prec-div fmad use_fast_math extra-device-vectorization dopt restrict pch use-pch "
    "diag-error diag-suppress diag-warn opt-info split-compile minimal time"
)
_LONG = {f"-{name}": f"--{name}" for name in _ALSO_WITH_ONE_DASH.split()} | {
    "-D": "--define-macro",
    "-U": "--undefine-macro",
    "-I": "--include-path",
    "-G": "--device-debug",
    "-lineinfo": "--generate-line-info",
    "-Xptxas": "--ptxas-options",
    "-rdc": "--relocatable-device-code",
    "-dc": "--device-c",
    "-dw": "--device-w",
    "-dlto": "--dlink-time-opt",
    "--dlto": "--dlink-time-opt",
    "-arch": "--gpu-architecture",
    "-default-device": "--device-as-default-execution-space",
    "-include": "--pre-include",
    "-isystem": "--system-include",
    "-optf": "--options-file",
    "-w": "--disable-warnings",
    "-Xcompiler": "--compiler-options",
    "-ccbin": "--compiler-bindir",
    "-gencode": "--generate-code",
    "-code": "--gpu-code",
    "-o": "--output-file",
    "-err-no": "--display-error-number",
    "-no-err-no": "--no-display-error-number",
}
_REPEATABLE = (
    "define-macro undefine-macro include-path ptxas-options pre-include diag-error diag-suppress diag-warn opt-info "
    "compiler-options system-include"
)
_MAY_REPEAT = {f"--{name}" for name in _REPEATABLE.split()}
_WITH_VALUE = (
    "std maxrregcount ftz prec-sqrt prec-div fmad gpu-architecture dopt split-compile "
    "relocatable-device-code compiler-bindir options-file"
)
_TAKES_VALUE = _MAY_REPEAT | {f"--{name}" for name in f"{_WITH_VALUE} time".split()}
_GLUED = ("-D", "-U", "-I")
_REFUSED = {
    "--gpu-architecture": "the architecture is chosen with arch= or --gpuperf-arch",
    "--generate-code": "the architecture is chosen with arch= or --gpuperf-arch",
    "--gpu-code": "the architecture is chosen with arch= or --gpuperf-arch",
    "--output-file": "the machine code is read where it is made",
    "--dlink-time-opt": "it makes intermediate code, and static evidence is read from machine code",
    "--relocatable-device-code": "it leaves the machine code unlinked; static evidence needs a whole program",
    "--device-c": "it leaves the machine code unlinked; static evidence needs a whole program",
    "--device-w": "it is for separate compilation; static evidence needs a whole program",
    "--pch": "precompiled headers tie the result to files that the compile cache does not see",
    "--use-pch": "precompiled headers tie the result to files that the compile cache does not see",
    "--options-file": "the compile cache does not see the file: give the options that it holds",
    "--time": "it writes a file of its own beside every compilation",
}
_FILE_FOR_ASSEMBLER = re.compile(r"(?:^|[\s,])--?(?:options-file|optf)\b")
_FAST_COMPILE = re.compile(r"-{1,2}(?:Ofast-compile|Ofc)=(min|mid|max)")
_ASSEMBLER_LEVEL = re.compile(r"(?:^|[\s,])(?:-O|--?opt-level[=\s])\s*(\d)")
_NAME_VALUE = re.compile(r"(--?[\w-]+)(?:\s*[=\s]\s*(.*))?", re.DOTALL)


def canonical_options(given: Sequence[str], defaults: Sequence[str] = DEFAULTS) -> tuple[str, ...]:
    """The user's options after the ``defaults``, CuPy's: long names, ``--name=value`` in one piece, the user's order.

    Of options that may not repeat, the last one wins; a folder named twice is searched where it was named first.
    Raises ``BadOption`` for one that has no value, or that would lead past what static evidence is read from.
    Unknown options go to the compiler as they are.
    """
    chosen = {option.partition("=")[0]: option for option in defaults}
    for name, value in _pairs(given):
        option = name if value is None else f"{name}={value}"
        if name in _REFUSED and option != "--relocatable-device-code=false":
            raise BadOption(f"compiler option {option!r} cannot be used here: {_REFUSED[name]}")
        if name == "--ptxas-options" and _FILE_FOR_ASSEMBLER.search(str(value)):
            raise BadOption(f"compiler option {option!r} cannot be used here: {_REFUSED['--options-file']}")
        key = option if name in _MAY_REPEAT else name
        if name == "--include-path" and key in chosen:
            continue
        chosen.pop(key, None)
        chosen[key] = option
    return tuple(chosen.values())


def include_folders(options: Sequence[str]) -> tuple[Path, ...]:
    """Folders named by ``--include-path`` in canonical options, in order."""
    return tuple(map(Path, _values("--include-path=", options)))


def pre_includes(options: Sequence[str]) -> tuple[str, ...]:
    """Headers named by ``--pre-include`` in canonical options."""
    return _values("--pre-include=", options)


def unoptimised_by(given: Sequence[str]) -> str:
    """The option that has the compiler not optimise, as a user would write it; empty if none does.

    ``given`` are options as users write them.  ``--dopt=on`` optimises in spite of ``-G``, and of several levels for
    the assembler the last one holds (NVRTC and ptxas 13.0).
    """
    try:
        options = canonical_options(given, ())
    except BadOption:
        return ""
    if "--device-debug" in options and "--dopt=on" not in options:
        return "-G"
    fast = next(filter(None, map(_FAST_COMPILE.fullmatch, options)), None)
    if fast is not None:
        return f"--Ofast-compile={fast[1]}"
    levels = _ASSEMBLER_LEVEL.findall(" ".join(_values("--ptxas-options=", options)))
    return "-Xptxas -O0" if levels and levels[-1] == "0" else ""


def _values(prefix: str, options: Sequence[str]) -> tuple[str, ...]:
    return tuple(option.removeprefix(prefix) for option in options if option.startswith(prefix))


def without_paths(options: Sequence[str]) -> tuple[str, ...]:
    """Canonical options less include folders: what two machines have in common."""
    return tuple(option for option in options if not option.startswith(("--include-path=", "--system-include=")))


def _pairs(given: Sequence[str]) -> list[tuple[str, str | None]]:
    """Name and value of each option; a value may be glued on, follow ``=``, a blank, or be the next item."""
    pairs: list[tuple[str, str | None]] = []
    items = iter(given)
    for item in items:
        name, value = _split(str(item).strip())
        if value is None and name in _TAKES_VALUE:
            value = next(items, None)
            if value is None:
                raise BadOption(f"compiler option {item!r} needs a value")
        pairs.append((name, value))
    return pairs


def _split(item: str) -> tuple[str, str | None]:
    if not item.startswith("-"):
        raise BadOption(f"compiler option {item!r} does not start with '-' and follows no option that takes a value")
    if item[:2] in _GLUED and not item.startswith("--"):
        return _LONG[item[:2]], item[2:].strip() or None
    found = _NAME_VALUE.fullmatch(item)
    if found is None:
        raise BadOption(f"compiler option {item!r} is not of the form --name or --name=value")
    return _LONG.get(found[1], found[1]), found[2] or None
