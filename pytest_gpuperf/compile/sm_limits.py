"""Limits of the architectures that static evidence covers, and those that all of them share."""

from __future__ import annotations

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.model.architectures import ARCHITECTURES, SPELLINGS, Architecture

REGISTERS_PER_SM = 65536
REGISTERS_PER_THREAD = 255
THREADS_PER_BLOCK = 1024
SUB_PARTITIONS = 4


def limits_of(arch: str) -> Architecture:
    """Limits of ``sm_90``, also spelled ``sm_90a``.  Raises ``UnknownArchitecture``."""
    plain = arch.rstrip("af")
    if arch in SPELLINGS:
        return ARCHITECTURES[plain]
    variant = arch.removeprefix(plain)
    why = f": {plain} has no variant {variant!r}" if plain in ARCHITECTURES and len(variant) == 1 else ""
    raise UnknownArchitecture(arch, ARCHITECTURES, why)
