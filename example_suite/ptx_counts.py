"""How often each instruction is in a kernel's PTX: what the compiler was given to work with, before ptxas."""

from __future__ import annotations

from typing import Any

from pytest_gpuperf.compile.ptx_text import ptx_instructions, ptx_of

MOVING = ("ld.", "st.", "mov.")


def instructions(kernel: Any, arch: str | None = None) -> dict[str, int]:
    """By opcode with its modifiers; of the first target, because architectures hardly differ before ptxas."""
    return ptx_instructions(ptx_of(kernel.ptx(arch or kernel.targets[0]), kernel.binary.symbol))


def floating_point(kernel: Any) -> dict[str, int]:
    """Those that calculate with float or double."""
    types = (".f32", ".f64")
    found = instructions(kernel)
    return {name: n for name, n in found.items() if name.endswith(types) and not name.startswith(MOVING)}
