"""The one table of architectures, sm_75 to sm_121: what an SM holds, and what a typical GPU of each has.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and ``cuda_occupancy.h``.
Multiprocessors, L2 and memory are those of the data-centre or largest consumer part.
"""

from __future__ import annotations

from typing import NamedTuple

WARP_THREADS = 32
KIB = 1024
STATIC_SHARED_BYTES = 48 * KIB
"""The most that a kernel may declare, and use without asking, on every architecture (CUDA C++ Programming Guide)."""


class Architecture(NamedTuple):
    """What one SM can hold, and the GPU that it is found in."""

    warps_per_sm: int
    blocks_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """With opt-in (``cudaFuncAttributeMaxDynamicSharedMemorySize``)."""
    reserved_shared_bytes: int
    """Taken by the driver from every block."""
    shared_granularity: int
    """Shared memory is handed out in multiples of this many bytes."""
    chip: str
    """Whose names of metrics it uses."""
    sm_count: int
    l2_mib: int
    memory_gib: int

    @property
    def threads_per_sm(self) -> int:
        return self.warps_per_sm * WARP_THREADS


def _ampere_and_later(warps: int, blocks: int, shared_kib: int, chip: str, *gpu: int) -> Architecture:
    return Architecture(warps, blocks, shared_kib * KIB, (shared_kib - 1) * KIB, 1024, 128, chip, *gpu)


ARCHITECTURES: dict[str, Architecture] = {
    "sm_75": Architecture(32, 16, 64 * KIB, 64 * KIB, 0, 256, "TU102", 72, 6, 24),
    "sm_80": _ampere_and_later(64, 32, 164, "GA100", 108, 40, 80),
    "sm_86": _ampere_and_later(48, 16, 100, "GA102", 84, 6, 24),
    "sm_87": _ampere_and_later(48, 16, 164, "GA10B", 16, 4, 64),
    "sm_89": _ampere_and_later(48, 24, 100, "AD102", 128, 72, 24),
    "sm_90": _ampere_and_later(64, 32, 228, "GH100", 132, 50, 80),
    "sm_100": _ampere_and_later(64, 32, 228, "GB100", 148, 126, 192),
    "sm_103": _ampere_and_later(64, 32, 228, "GB110", 160, 126, 288),
    "sm_110": _ampere_and_later(48, 24, 228, "GB10B", 20, 32, 128),
    "sm_120": _ampere_and_later(48, 24, 100, "GB202", 170, 96, 32),
    "sm_121": _ampere_and_later(48, 24, 100, "GB20B", 48, 24, 128),
}

FALLBACK_ARCHS = ("sm_80", "sm_90", "sm_100", "sm_120")
"""Static targets where there are neither baselines nor a GPU: one of each generation in wide use."""

_VARIANTS_FROM = {"": 0, "a": 90, "f": 100}
"""Architecture- and family-specific code exists from these on."""

SPELLINGS = tuple(
    f"{arch}{variant}"
    for arch in ARCHITECTURES
    for variant, first in _VARIANTS_FROM.items()
    if int(arch.removeprefix("sm_")) >= first
)
"""What can be compiled for: ``sm_90``, ``sm_90a``."""


def plain(arch: str) -> str:
    """The architecture that a variant is of: ``sm_90`` for ``sm_90a``, and for ``sm_90``."""
    return arch.rstrip("af")
