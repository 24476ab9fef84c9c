"""Names of compilers, as evidence carries them: ``nvrtc 13.0.88``, ``triton 3.6.0, ptxas 13.0.88``."""

from __future__ import annotations

UNKNOWN_TOOLCHAIN = "unknown"
"""Of machine code that does not say what made it: CUDA 12 and before leave the assembler out of many cubins."""

COMPILERS = ("nvrtc", "nvcc", "ptxas", "triton", "numba", "cutlass-dsl", "cutile")
"""What such names begin with."""


def is_known(toolchain: str) -> bool:
    """Whether the name tells one compiler from another: it has a version."""
    return any(character.isdigit() for character in toolchain)


def same_toolchain(one: str, other: str) -> bool:
    """Whether the two are known to be one compiler; two unknown ones are not."""
    return one == other and is_known(one)
