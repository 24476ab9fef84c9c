"""The difference between two kernels in the source: a diff of the definitions that only one of them uses.

The kernels of this suite are formatted so that a definition begins in the first column and ends with a brace there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

MOST_LINES = 40
"""Of a diff; the rest is in the kernels' file."""
_ATTRIBUTES = {"__launch_bounds__", "__maxnreg__", "__cluster_dims__", "alignas", "decltype", "asm"}
_CALL = re.compile(r"\b(operator\S+|[A-Za-z_]\w*)\s*\(")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_ONE_LINE = r"[^={\n]*(?:=.*)?;[^\n;]*$"
_DEFINITION = re.compile(rf"^(?!//|[#\s}}]|{_ONE_LINE})(?:.*\n)+?\}}.*$", re.MULTILINE)


def difference(source: str, naive: str, optimised: str) -> list[str]:
    """Lines of a diff from one kernel to the other; none if they are the same in the source."""
    defined = definitions(source)
    sides = [used_by(kernel, defined) for kernel in (naive, optimised)]
    texts = ["\n\n".join(defined[name] for name in side if name not in other)
             for side, other in zip(sides, reversed(sides), strict=True)]  # fmt: skip
    own = [[*([f"// {kernel}"] if "<" in kernel else []), *text.splitlines()]
           for kernel, text in zip((naive, optimised), texts, strict=True)]  # fmt: skip
    lines = list(difflib.unified_diff(*own, n=1, lineterm=""))[3:]
    shown = ["..." if line.startswith("@@") else line for line in lines]
    return shown if len(shown) <= MOST_LINES else [*shown[:MOST_LINES], f"... {len(shown) - MOST_LINES} more lines"]


def definitions(source: str) -> dict[str, str]:
    """Functions and types of a source by name, with their text; overloads of a name one after the other."""
    found: dict[str, str] = {}
    for text in _DEFINITION.findall(source):
        name = _name(text)
        found[name] = f"{found[name]}\n\n{text}" if name in found else text
    return found


def _name(text: str) -> str:
    declared = re.sub(r"^template\s*<[^{]*?>\s*\n", "", text.split("{", 1)[0])
    of_type = re.match(r"(?:struct|class)\s+(?:alignas\(\d+\)\s+)?(\w+)", declared)
    called = (name for name in _CALL.findall(declared) if name not in _ATTRIBUTES)
    return of_type[1] if of_type else next(called, declared.strip())


def used_by(kernel: str, defined: Mapping[str, str]) -> list[str]:
    """Names of the definitions that a kernel, given as it is instantiated (``repeat<Divide, 16>``), consists of."""
    found, words = set(), _WORD.findall(kernel)
    while words:
        word = words.pop()
        if word in defined and word not in found:
            found.add(word)
            words += _WORD.findall(defined[word])
    return [name for name in defined if name in found]
