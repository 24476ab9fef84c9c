"""Limits of the architectures that static evidence covers, sm_75 to sm_121.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and NVIDIA's
``cuda_occupancy.h``.  Not modelled: the number of hardware barriers, clusters, ``setmaxnreg``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture

REGISTERS_PER_SM = 65536
REGISTERS_PER_THREAD = 255
THREADS_PER_BLOCK = 1024
WARP_THREADS = 32
SUB_PARTITIONS = 4
KIB = 1024


class Limits(NamedTuple):
    """Resources of one SM of an architecture."""

    warps_per_sm: int
    blocks_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """With opt-in (``cudaFuncAttributeMaxDynamicSharedMemorySize``)."""
    reserved_shared_bytes: int
    """Taken by the driver from every block."""
    shared_granularity: int
    """Shared memory is handed out in multiples of this many bytes."""

    @property
    def threads_per_sm(self) -> int:
        return self.warps_per_sm * WARP_THREADS


def _ampere_and_later(warps: int, blocks: int, shared_kib: int) -> Limits:
    return Limits(warps, blocks, shared_kib * KIB, (shared_kib - 1) * KIB, 1024, 128)


ARCHITECTURES: dict[str, Limits] = {
    "sm_75": Limits(32, 16, 64 * KIB, 64 * KIB, 0, 256),
    "sm_80": _ampere_and_later(64, 32, 164),
    "sm_86": _ampere_and_later(48, 16, 100),
    "sm_87": _ampere_and_later(48, 16, 164),
    "sm_89": _ampere_and_later(48, 24, 100),
    "sm_90": _ampere_and_later(64, 32, 228),
    "sm_100": _ampere_and_later(64, 32, 228),
    "sm_103": _ampere_and_later(64, 32, 228),
    "sm_110": _ampere_and_later(48, 24, 228),
    "sm_120": _ampere_and_later(48, 24, 100),
    "sm_121": _ampere_and_later(48, 24, 100),
}

_VARIANTS_FROM = {"a": 90, "f": 100}
"""Architecture- and family-specific code exists from these on."""

_NAME = re.compile(r"(sm_\d{2,3})([af]?)")


def limits_of(arch: str) -> Limits:
    """Limits of ``sm_90``, also spelled ``sm_90a``.  Raises ``UnknownArchitecture``."""
    found = _NAME.fullmatch(arch)
    if found is None or found[1] not in ARCHITECTURES:
        raise UnknownArchitecture(arch, ARCHITECTURES)
    if int(found[1].removeprefix("sm_")) < _VARIANTS_FROM.get(found[2], 0):
        raise UnknownArchitecture(arch, ARCHITECTURES, f": {found[1]} has no variant {found[2]!r}")
    return ARCHITECTURES[found[1]]
