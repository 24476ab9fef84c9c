"""Facts of a typical GPU of each architecture, for forming launches where there is no GPU.

Nominal: they size grids and bound launches, and never become evidence.  Multiprocessors, L2 and memory are
those of the data-centre or largest consumer part; the limits are the architecture's (CUDA C++ Programming
Guide, "Compute Capabilities").
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_gpuperf.model.evidence import DeviceFacts


class _Part(NamedTuple):
    sm_count: int
    l2_mib: int
    memory_gib: int
    shared_sm_kib: int
    shared_block_kib: int
    threads_per_sm: int
    blocks_per_sm: int


_PARTS = {
    (7, 5): _Part(72, 6, 24, 64, 64, 1024, 16),
    (8, 0): _Part(108, 40, 80, 164, 163, 2048, 32),
    (8, 6): _Part(84, 6, 24, 100, 99, 1536, 16),
    (8, 7): _Part(16, 4, 64, 164, 163, 1536, 16),
    (8, 9): _Part(128, 72, 24, 100, 99, 1536, 24),
    (9, 0): _Part(132, 50, 80, 228, 227, 2048, 32),
    (10, 0): _Part(148, 126, 192, 228, 227, 2048, 32),
    (10, 3): _Part(160, 126, 288, 228, 227, 2048, 32),
    (11, 0): _Part(20, 32, 128, 228, 227, 1536, 24),
    (12, 0): _Part(170, 96, 32, 100, 99, 1536, 24),
    (12, 1): _Part(48, 24, 128, 100, 99, 1536, 24),
}


def nominal_facts(arch: str) -> DeviceFacts:
    """Facts of a typical GPU of ``arch`` (``sm_90``); those of Hopper for one that is not in the table."""
    digits = "".join(c for c in arch if c.isdigit())
    capability = (int(digits[:-1] or 9), int(digits[-1:] or 0))
    if capability not in _PARTS:
        capability = (9, 0)
    part = _PARTS[capability]
    return DeviceFacts(
        name="no GPU", slug="none", uuid="", index=0, compute_capability=capability, sm_count=part.sm_count,
        l2_bytes=part.l2_mib << 20, memory_bytes=part.memory_gib << 30, max_threads_per_block=1024,
        max_grid=(2**31 - 1, 65535, 65535), max_block=(1024, 1024, 64), shared_bytes_per_block=48 << 10,
        shared_bytes_per_block_optin=part.shared_block_kib << 10, shared_bytes_per_sm=part.shared_sm_kib << 10,
        registers_per_sm=65536, max_threads_per_sm=part.threads_per_sm, max_blocks_per_sm=part.blocks_per_sm,
    )  # fmt: skip
