"""How often each instruction is in a kernel's PTX: what the compiler was given to work with, before ptxas."""

from __future__ import annotations

import re
from typing import Any

MOVING = ("ld.", "st.", "mov.")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
STATEMENT_END = re.compile(r"[;{}]")
LABEL = re.compile(r"^\s*[\w$%]+\s*:(?!:)\s*")
PREDICATE = re.compile(r"^@!?%?[\w$]+\s+")
OPCODE = re.compile(r"[a-z]\w*(?:(?:\.|::)\w+)*")


def instructions(kernel: Any, arch: str | None = None) -> dict[str, int]:
    """By opcode with its modifiers; of the first target, because architectures hardly differ before ptxas."""
    return ptx_instructions(ptx_of(kernel.ptx(arch or kernel.targets[0]), kernel.binary.symbol))


def ptx_of(ptx: str, symbol: str) -> str:
    """The entry of a kernel to its closing brace."""
    entry = re.search(rf"\.entry\s+{re.escape(symbol)}\b", ptx)
    if entry is None:
        raise ValueError(f"this PTX has no kernel {symbol}")
    depth = 0
    for brace in re.compile(r"[{}]").finditer(ptx, entry.end()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return ptx[entry.start() : brace.end()]
    return ptx[entry.start() :]


def ptx_instructions(ptx: str) -> dict[str, int]:
    """Count of each instruction in the text: ``{"fma.rn.f32": 64, ...}``, in alphabetical order."""
    bare = STRING.sub('""', COMMENT.sub(" ", ptx))
    counts: dict[str, int] = {}
    for statement in STATEMENT_END.split(bare):
        text = statement.strip()
        while (label := LABEL.match(text)) is not None:
            text = text[label.end() :]
        opcode = OPCODE.match(PREDICATE.sub("", text, count=1))
        if opcode is not None:
            counts[opcode[0]] = counts.get(opcode[0], 0) + 1
    return dict(sorted(counts.items()))


def floating_point(kernel: Any) -> dict[str, int]:
    """Those that calculate with float or double."""
    types = (".f32", ".f64")
    found = instructions(kernel)
    return {name: n for name, n in found.items() if name.endswith(types) and not name.startswith(MOVING)}
