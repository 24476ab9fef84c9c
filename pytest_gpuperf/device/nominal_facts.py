"""Facts of a typical GPU of each architecture, for forming launches where there is no GPU.

Nominal: they size grids and bound launches, and never become evidence.
"""

from __future__ import annotations

from pytest_gpuperf.model.architectures import ARCHITECTURES, KIB
from pytest_gpuperf.model.device_facts import DeviceFacts


def nominal_facts(arch: str) -> DeviceFacts:
    """Facts of a typical GPU of ``arch`` (``sm_90``); those of Hopper for one that is not in the table."""
    known = f"sm_{''.join(c for c in arch if c.isdigit())}"
    known = known if known in ARCHITECTURES else "sm_90"
    part, number = ARCHITECTURES[known], int(known.removeprefix("sm_"))
    return DeviceFacts(
        name="no GPU", slug="none", uuid="", index=0, compute_capability=divmod(number, 10), sm_count=part.sm_count,
        l2_bytes=part.l2_mib << 20, memory_bytes=part.memory_gib << 30, max_threads_per_block=1024,
        max_grid=(2**31 - 1, 65535, 65535), max_block=(1024, 1024, 64), shared_bytes_per_block=48 * KIB,
        shared_bytes_per_block_optin=part.shared_bytes_per_block, shared_bytes_per_sm=part.shared_bytes_per_sm,
        registers_per_sm=65536, max_threads_per_sm=part.threads_per_sm, max_blocks_per_sm=part.blocks_per_sm,
    )  # fmt: skip
