"""What a source says of itself, and what differs between two of its kernels: definitions that only one uses, as a diff.

The kernels of this suite are formatted so that a definition begins in the first column and ends with a brace there.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping, Sequence

CONTEXT = 1
"""Lines around a difference."""
_ATTRIBUTES = {"__launch_bounds__", "__maxnreg__", "__cluster_dims__", "alignas", "decltype", "asm"}
_CALL = re.compile(r"\b(operator\S+|[A-Za-z_]\w*)\s*\(")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def head(source: str) -> str:
    """The comment that a source begins with, without its slashes."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), source.splitlines())
    return "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines)


def definitions(source: str) -> dict[str, str]:
    """Functions and types of a source by name, with their text; overloads of a name one after the other."""
    found: dict[str, str] = {}
    lines: list[str] = []
    for line in source.splitlines():
        if not lines and (not line.strip() or line.startswith(("//", "#", " ", "}")) or _is_whole(line)):
            continue
        lines.append(line)
        if line.startswith("}"):
            text = "\n".join(lines)
            name = _name(text)
            found[name] = f"{found[name]}\n\n{text}" if name in found else text
            lines = []
    return found


def _is_whole(line: str) -> bool:
    """A declaration that ends in its first line: a constant, an alias."""
    return line.split("//")[0].rstrip().endswith(";") and "{" not in line.split("=")[0]


def _name(text: str) -> str:
    head = text.split("{", 1)[0]
    declared = re.sub(r"^template\s*<[^{]*?>\s*\n", "", head)
    of_type = re.match(r"(?:struct|class)\s+(?:alignas\(\d+\)\s+)?(\w+)", declared)
    if of_type:
        return of_type[1]
    return next((name for name in _CALL.findall(declared) if name not in _ATTRIBUTES), declared.strip())


def used_by(kernel: str, defined: Mapping[str, str]) -> dict[str, str]:
    """Definitions that a kernel, given as it is instantiated (``repeat<Divide, 16>``), is made of."""
    found: dict[str, str] = {}
    open_words = list(dict.fromkeys(_WORD.findall(kernel)))
    while open_words:
        word = open_words.pop(0)
        if word in defined and word not in found:
            found[word] = defined[word]
            open_words += _WORD.findall(defined[word])
    return {name: defined[name] for name in defined if name in found}


def difference(source: str, naive: str, optimised: str) -> list[str]:
    """Lines of a diff from one kernel to the other; none if they are the same in the source."""
    defined = definitions(source)
    sides = [used_by(kernel, defined) for kernel in (naive, optimised)]
    own = [_with(kernel, [text for name, text in side.items() if name not in other])
           for kernel, side, other in zip((naive, optimised), sides, reversed(sides), strict=True)]  # fmt: skip
    lines = list(difflib.unified_diff(*own, n=CONTEXT, lineterm=""))[3:]
    return ["..." if line.startswith("@@") else line for line in lines]


def shared(source: str, naive: str, optimised: str) -> list[str]:
    """Definitions that both kernels use, and that the lines in which they differ name."""
    defined = definitions(source)
    common = used_by(naive, defined).keys() & used_by(optimised, defined).keys()
    changed = [line for line in difference(source, naive, optimised) if line.startswith(("-", "+"))] or [naive]
    named = {word for line in changed for word in _WORD.findall(line)}
    return "\n\n".join(defined[name] for name in defined if name in common & named).splitlines()


def _with(kernel: str, texts: Sequence[str]) -> list[str]:
    """The definitions of one side alone; and how its template is instantiated."""
    lines = "\n\n".join(texts).splitlines()
    return [f"// {kernel}", *lines] if "<" in kernel else lines
