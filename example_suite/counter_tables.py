"""Which counters show a cause, as rows of a table: the naive side, the optimised side."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import counters
from claims import NotCollected
from hopper_metrics import Measured
from pairs import Pair
from recorded import GPU, SUITE, Recorded

FILE = SUITE.parent / "tests" / "replays" / "counters" / f"{GPU}.json"

Reading = Callable[[Measured], float]
_SECTORS: Mapping[str, Reading] = {
    "sectors per load of a warp": lambda of: counters.sectors_per_request(of, "ld"),
    "sectors per store of a warp": lambda of: counters.sectors_per_request(of, "st"),
    "bytes used of each sector loaded": counters.bytes_used_per_sector,
}
_LANES: Mapping[str, Reading] = {
    "active lanes per instruction": counters.active_lanes,
    "instructions of all warps": counters.instructions,
}
_WAITING: Mapping[str, Reading] = {
    "cycles from one instruction of a warp to the next": counters.cycles_per_instruction,
    "of these waiting for memory": lambda of: counters.stall(of, "long_scoreboard"),
    "of these waiting for an earlier instruction": lambda of: counters.stall(of, "wait"),
}
_OCCUPANCY: Mapping[str, Reading] = {
    "occupancy as configured (%)": counters.theoretical_occupancy,
    "occupancy achieved (%)": counters.achieved_occupancy,
    "warps ready to issue, per scheduler": counters.eligible_warps,
}
_INSTRUCTIONS: Mapping[str, Reading] = {"instructions of all warps": counters.instructions}
OF_CAUSE: Mapping[str, Mapping[str, Reading]] = {
    "uncoalesced access": _SECTORS,
    "redundant global traffic": {
        "global loads of warps": lambda of: counters.memory_instructions(of, "global", "ld"),
        "global stores of warps": lambda of: counters.memory_instructions(of, "global", "st"),
        "bytes to and from DRAM": counters.dram_bytes,
    },
    "bank conflicts": {
        "turns per shared load": lambda of: counters.wavefronts_per_shared_access(of, "ld"),
        "turns per shared store": lambda of: counters.wavefronts_per_shared_access(of, "st"),
    },
    "register spilling": {"local loads and stores of warps": counters.local_accesses, **_OCCUPANCY},
    "stack from run-time indexing": {"local loads and stores of warps": counters.local_accesses, **_INSTRUCTIONS},
    "occupancy lost": _OCCUPANCY,
    "launch configuration": _OCCUPANCY,
    "more work per thread": _OCCUPANCY,
    "divergence": _LANES,
    "double-precision literals": {"FP64 pipe busy (%)": counters.fp64_busy, **_INSTRUCTIONS},
    "slow-path division": {"special-function instructions": counters.special_instructions, **_INSTRUCTIONS},
    "instruction growth": _INSTRUCTIONS,
    "exposed latency": _WAITING,
    "barrier stalls": {"cycles per instruction waiting at barriers": lambda of: counters.stall(of, "barrier")},
    "lost vectorisation": {
        "global loads of warps": lambda of: counters.memory_instructions(of, "global", "ld"),
        "shared loads of warps": lambda of: counters.memory_instructions(of, "shared", "ld"),
        **_INSTRUCTIONS,
    },
    "lost tensor cores": {"tensor-core instructions": counters.tensor_instructions, **_INSTRUCTIONS},
    "cache hit loss": {"L1 hits (%)": counters.l1_hit_rate, "L2 hits (%)": counters.l2_hit_rate},
}
ALWAYS: Mapping[str, Reading] = {
    "cycles of an SM": counters.cycles,
    "issue slots used (%)": lambda of: 100 * counters.issue_rate(of),
    "DRAM busy (%)": counters.dram_throughput,
}
"""How long, and the two figures that tell what bounds a kernel."""


class Counted(NamedTuple):
    """Counters of one workload."""

    counters: Mapping[str, float]


class Row(NamedTuple):
    name: str
    naive: float
    optimised: float


def rows(pair: Pair, recorded: Recorded) -> list[Row]:
    """Rows of a pair; none where its counters are not on record."""
    sides = [counted(pair, name, recorded) for name in (pair.naive, pair.optimised)]
    found = []
    for name, reading in {**OF_CAUSE.get(pair.cause, {}), **ALWAYS}.items():
        values = [_read(reading, side) for side in sides]
        if None not in values and any(values):
            found.append(Row(name, *(value for value in values if value is not None)))
    return found


def counted(pair: Pair, workload: str, recorded: Recorded) -> Counted:
    """Of the run that took all counters; or, of workloads that it lacks, those of the baseline."""
    test = replayed().get(f"{SUITE.name}/{pair.module}::{pair.test}", {})
    time = recorded.time(pair, workload)
    return Counted(test.get(workload) or (time.counters if time else {}))


def _read(reading: Reading, of: Counted) -> float | None:
    """None for what was not counted, or is a share of nothing."""
    try:
        return reading(of)
    except (NotCollected, ZeroDivisionError):
        return None


@functools.cache
def replayed(file: Path = FILE) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """By test, workload and metric."""
    if not file.exists():
        return {}
    content = json.loads(file.read_text(encoding="utf-8"))
    return {
        test: {
            workload: {name: value for name, value in zip(content["metrics"], values, strict=True) if value is not None}
            for workload, values in workloads.items()
        }
        for test, workloads in content["workloads"].items()
    }
