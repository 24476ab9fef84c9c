"""The counters that show a cause, of both sides of a pair."""

from __future__ import annotations

from collections.abc import Mapping

import counters
from pages.facts import Pair, Recorded

FIGURES = counters.figures()
_ALL = {"instructions of all warps": "instructions"}
_GLOBAL = {"global loads of warps": "memory_instructions global ld",
           "global stores of warps": "memory_instructions global st"}  # fmt: skip
_LOCAL = {"local loads and stores of warps": "local_accesses"}
_OCCUPANCY = {"occupancy as configured (%)": "theoretical_occupancy", "occupancy achieved (%)": "achieved_occupancy",
              "warps ready to issue, per scheduler": "eligible_warps"}  # fmt: skip
OF_CAUSE: Mapping[str, Mapping[str, str]] = {
    "uncoalesced access": {"sectors per load of a warp": "sectors_per_request ld",
                           "sectors per store of a warp": "sectors_per_request st",
                           "bytes used of each sector loaded": "bytes_used_per_sector"},
    "redundant global traffic": {**_GLOBAL, "bytes to and from DRAM": "dram_bytes"},
    "bank conflicts": {"wavefronts per shared load": "wavefronts_per_shared_access ld",
                       "wavefronts per shared store": "wavefronts_per_shared_access st"},
    "register spilling": {**_LOCAL, **_OCCUPANCY},
    "stack from run-time indexing": {**_LOCAL, **_ALL},
    **dict.fromkeys(("occupancy lost", "launch configuration", "more work per thread"), _OCCUPANCY),
    "divergence": {"active lanes per instruction": "active_lanes", **_ALL},
    "double-precision literals": {"FP64 pipe busy (%)": "fp64_busy", **_ALL},
    "slow-path division": {"special-function instructions": "special_instructions", **_ALL},
    "instruction growth": _ALL,
    "exposed latency": {"cycles from one instruction of a warp to the next": "cycles_per_instruction",
                        "of these waiting for memory": "stall long_scoreboard",
                        "of these waiting for an earlier instruction": "stall wait"},
    "barrier stalls": {"cycles per instruction waiting at barriers": "stall barrier"},
    "lost vectorisation": {**_GLOBAL, "shared loads of warps": "memory_instructions shared ld", **_ALL},
    "lost tensor cores": {"tensor-core instructions": "tensor_instructions", **_ALL},
    "cache hit loss": {"L1 hits (%)": "l1_hit_rate", "L2 hits (%)": "l2_hit_rate"},
}  # fmt: skip
"""By cause: the row of a counter, and its figure with arguments."""
ALWAYS = {"cycles of an SM": "cycles", "share of the issue slots used": "issue_rate",
          "DRAM busy (%)": "dram_throughput"}  # fmt: skip
"""How long, and the two figures that show what bounds a kernel."""


def rows(pair: Pair, recorded: Recorded) -> list[tuple[str, str, str]]:
    """Name, naive and optimised figure of each counter that differs; none without counters."""
    sides = [recorded.counted(pair, name) for name in pair.names]
    found = []
    for row, of in {**OF_CAUSE.get(pair.cause, {}), **ALWAYS}.items():
        name, *arguments = of.split()
        try:
            naive, optimised = (number(FIGURES[name](side, *arguments)) for side in sides)
        except (LookupError, ZeroDivisionError):  # not collected, or a share of nothing
            continue
        if naive != optimised:
            found.append((row, naive, optimised))
    return found


def number(value: float) -> str:
    """Three digits; counts in full up to a million."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} million" if value < 1e9 else f"{value / 1e9:.3g} billion"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
