"""Limits of an SM, and theoretical occupancy: the arithmetic of NVIDIA's ``cuda_occupancy.h``.  Needs no GPU.

Assumes the largest shared-memory carve-out.  Does not model hardware barriers, compiled-in clusters or ``setmaxnreg``;
a kernel that uses them may reach less.
"""

from __future__ import annotations

import math
import operator

from pytest_gpuperf.compile.compile_errors import UnknownArchitecture
from pytest_gpuperf.model.architectures import ARCHITECTURES, SPELLINGS, WARP_THREADS, Architecture, plain
from pytest_gpuperf.model.evidence import Occupancy, StaticProfile, StaticRecord

REGISTERS_PER_SM = 65536
REGISTERS_PER_THREAD = 255
THREADS_PER_BLOCK = 1024
SUB_PARTITIONS = 4
REGISTER_GRANULARITY = 256
"""Registers are handed out to a warp in multiples of this many."""
BLOCKS_PER_CLUSTER = 8
"""On every GPU with clusters."""
_FIRST_WITH_CLUSTERS = 90


def limits_of(arch: str) -> Architecture:
    """Limits of ``sm_90``, also spelled ``sm_90a``.  Raises ``UnknownArchitecture``."""
    base = plain(arch)
    if arch in SPELLINGS:
        return ARCHITECTURES[base]
    variant = arch.removeprefix(base)
    why = f": {base} has no variant {variant!r}" if base in ARCHITECTURES and len(variant) == 1 else ""
    raise UnknownArchitecture(arch, ARCHITECTURES, why)


def occupancy(
    profile: StaticProfile, arch: str, block_threads: int, dynamic_shared_bytes: int = 0, *, clustered: bool = False
) -> Occupancy:
    """Of a kernel launched with ``block_threads`` threads per block, one at least, in clusters or not.

    Raises ``UnknownArchitecture``.
    """
    limits, warps = limits_of(arch), -(-block_threads // WARP_THREADS)
    if clustered and int(plain(arch).removeprefix("sm_")) < _FIRST_WITH_CLUSTERS:
        return Occupancy(blocks_per_sm=0, warps_per_sm=0, fraction=0.0, limiter="clusters")
    bounds = {
        "warps": limits.warps_per_sm // warps if block_threads <= THREADS_PER_BLOCK else 0,
        "blocks": limits.blocks_per_sm,
        "registers": _blocks_by_registers(profile.registers, warps, limits),
        "shared memory": _blocks_by_shared(profile.shared_bytes + dynamic_shared_bytes, limits),
    }
    limiter, blocks = min(bounds.items(), key=operator.itemgetter(1))
    resident = blocks * warps
    return Occupancy(
        blocks_per_sm=blocks, warps_per_sm=resident, fraction=resident / limits.warps_per_sm, limiter=limiter
    )


def why_unfit(record: StaticRecord, arch: str) -> str:
    """Why no block of this launch fits an SM of ``arch``, and what to do; empty if one fits, or without a launch."""
    if record.occupancy is None or record.block is None or record.occupancy.blocks_per_sm:
        return ""
    limits, profile, threads = limits_of(arch), record.profile, math.prod(record.block)
    shared, limiter = profile.shared_bytes + record.dynamic_shared_bytes, record.occupancy.limiter
    if limiter == "registers":
        what = f"{profile.registers} registers x {threads:,} threads, of {REGISTERS_PER_SM:,}"
        remedy = f"__launch_bounds__({threads}), or a smaller block"
    elif limiter == "shared memory":
        what, remedy = f"{shared:,} bytes of shared memory a block, of {limits.shared_bytes_per_block:,}", "use less"
    elif limiter == "clusters":
        what, remedy = f"clusters begin with sm_{_FIRST_WITH_CLUSTERS}", "launch it without a cluster"
    else:
        what, remedy = f"{threads:,} threads a block, of {THREADS_PER_BLOCK:,}", "a smaller block"
    return f"does not fit: {what}: {remedy}; or name the GPUs that it is for: cuda_kernel(..., arch=...)"


def _blocks_by_registers(registers: int, warps: int, limits: Architecture) -> int:
    if registers == 0:
        return limits.blocks_per_sm
    per_warp = _round_up(registers * WARP_THREADS, REGISTER_GRANULARITY)
    if registers > REGISTERS_PER_THREAD or per_warp * _round_up(warps, SUB_PARTITIONS) > REGISTERS_PER_SM:
        return 0
    warps_per_partition = REGISTERS_PER_SM // SUB_PARTITIONS // per_warp
    return warps_per_partition * SUB_PARTITIONS // warps


def _blocks_by_shared(shared_bytes: int, limits: Architecture) -> int:
    if shared_bytes > limits.shared_bytes_per_block:
        return 0
    per_block = _round_up(shared_bytes + limits.reserved_shared_bytes, limits.shared_granularity)
    return limits.shared_bytes_per_sm // per_block if per_block else limits.blocks_per_sm


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
