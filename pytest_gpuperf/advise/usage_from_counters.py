"""A usage out of Nsight Compute's counters, and how busy each part of the hardware was.

Metrics are named as on GH100.  Where a metric was not collected, what depends on it is unknown, and the rules that need
it stay silent.  Arithmetic, barriers and lanes of loads are taken from the machine code, in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_gpuperf.advise.comparison import ANY, SECTOR_BYTES, WARP, Side, Usage
from pytest_gpuperf.advise.cost import rest_of
from pytest_gpuperf.advise.usage_from_code import limit_of, static_usage

Counters = Mapping[str, float]

INSTRUCTIONS = "smsp__inst_executed.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
CYCLES = "sm__cycles_elapsed.max"
WARPS = "smsp__warps_active.avg.per_cycle_active"
SPLITS = "smsp__sass_branch_targets_threads_divergent.sum"
SHARED_WAVEFRONTS, SHARED_IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
USEFUL = "smsp__sass_data_bytes_mem_global_op_{}.sum"
DRAM = "dram__bytes_{}.sum"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

ACCESSES = {name: f"smsp__sass_inst_executed_op_{kind}.sum" for name, kind in {
    "global_load": "global_ld", "global_store": "global_st", "shared_load": "shared_ld", "shared_store": "shared_st",
    "local_load": "local_ld", "local_store": "local_st", "branch": "branch",
}.items()}  # fmt: skip
"""Classes of instructions that are counted by themselves."""
STALLS = {
    "global_load": ("long_scoreboard", "lg_throttle"), "shared_load": ("short_scoreboard", "mio_throttle"),
    "barrier": ("barrier", "membar"), ANY: ("wait",), "branch": ("branch_resolving", "no_instruction"),
    "texture": ("tex_throttle",),
}  # fmt: skip
"""What a warp waits for, by the class of instruction that makes it wait; ``wait`` is a fixed latency, which any has."""
PARTS = {
    "issue": ("smsp__issue_active.avg.per_cycle_active", 1.0),
    "fp64": ("sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", 0.01),
    "fp32": ("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", 0.01),
    "integer": ("sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", 0.01),
    "mufu": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", 0.01),
    "tensor": ("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", 0.01),
    "l1": ("l1tex__throughput.avg.pct_of_peak_sustained_active", 0.01),
    "l2": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 0.01),
    "dram": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 0.01),
}
"""Metric and factor that say which fraction of the time a part was busy."""

WAYS = ("ld", "st")
NEEDED = (
    INSTRUCTIONS, THREAD_INSTRUCTIONS, CYCLES, PARTS["issue"][0], PARTS["l1"][0], REQUESTS.format("ld"),
    SECTORS.format("ld"), STALL.format("long_scoreboard"),
)  # fmt: skip
"""Without these the machine code tells more."""

EXACT = dict.fromkeys((
    INSTRUCTIONS, THREAD_INSTRUCTIONS, SHARED_WAVEFRONTS, SECTORS.format("ld"),
    *(REQUESTS.format(way) for way in WAYS), *ACCESSES.values(),
), 0.002) | {SECTORS.format("st"): 0.05}  # fmt: skip
"""Counters that are the same in every run of the same work, and the relative difference that is none: instructions vary
by 0.1 % where warps race, and an H200's L1 counted 2.8 % fewer of the same stores."""
SEEN = 0.01
"""Of the global loads in the machine code, at least this part is counted as such; else they are of another kind."""


def complete(counters: Counters) -> bool:
    """Whether there is enough to go by."""
    return all(name in counters for name in NEEDED)


def alike(before: Counters, after: Counters) -> bool:
    """Whether two runs did the same, by every exact counter that both have."""
    both = [name for name in EXACT if name in before and name in after]
    return all(math.isclose(before[name], after[name], rel_tol=EXACT[name]) for name in both)


def busy_parts(counters: Counters) -> dict[str, float]:
    """Fraction of the time that each part was busy, for the parts that were counted."""
    return {part: counters[name] * factor for part, (name, factor) in PARTS.items() if name in counters}


def counted_usage(side: Side, scale: float = 1.0) -> Usage | None:
    """What the whole run did, multiplied by ``scale``; None without the count of instructions."""
    counters = side.counters
    issued = counters.get(INSTRUCTIONS)
    if not issued:
        return None
    lanes = counters.get(THREAD_INSTRUCTIONS, WARP * issued) / issued
    requests, sectors, useful = (_sum(counters, name) for name in (REQUESTS, SECTORS, USEFUL))
    wavefronts, least = counters.get(SHARED_WAVEFRONTS), counters.get(SHARED_IDEAL)
    code = static_usage(side, side.estimate) if side.estimate is not None else Usage(issued=issued)
    times = issued / code.issued if code.issued else 0.0
    classes = {name: count * times for name, count in code.classes.items()} | {
        name: counters[metric] for name, metric in ACCESSES.items() if metric in counters
    }
    shared = classes.get("shared_load", 0) + classes.get("shared_store", 0)
    width = code.global_width
    if width is None and useful and requests:
        width = useful / requests / lanes
    loads = code.classes.get("global_load", 0) * times
    if classes.get("global_load", loads) < SEEN * loads:  # copies past the registers (LDGSTS) are none to the counters
        requests = sectors = useful = width = None
        classes["global_load"] = loads
    usage = Usage(
        issued=scale * issued, lanes=lanes, classes={name: scale * count for name, count in classes.items()},
        global_requests=scale * (requests or 0), global_bytes=_times(useful, scale),
        global_sectors=_times(sectors, scale), global_ideal=_times(_ideal(requests, sectors, useful), scale),
        global_width=width, load_lanes=code.load_lanes,
        shared_requests=scale * shared, shared_wavefronts=_times(wavefronts, scale), shared_ideal=_times(least, scale),
        shared_width=code.shared_width,
        local_requests=scale * (classes.get("local_load", 0) + classes.get("local_store", 0)),
        divisions=scale * times * code.divisions, split_branches=_times(counters.get(SPLITS), scale),
        warps=counters.get(WARPS), limit=limit_of(side),
        dram_bytes=_times(_sum(counters, DRAM, ("read", "write")), scale),
        cycles=_times(counters.get(CYCLES), scale),
    )  # fmt: skip
    return _with_waits(usage, counters)


def _with_waits(usage: Usage, counters: Counters) -> Usage:
    """With what is left of the time when every part's busy time is taken out, shared out by stall reasons."""
    if usage.cycles is None or not busy_parts(counters):
        return usage
    held = usage.warps or 1.0
    alone = held * rest_of(usage.cycles, {part: busy * usage.cycles for part, busy in busy_parts(counters).items()})
    stalls = {name: sum(counters.get(STALL.format(one), 0.0) for one in reasons) for name, reasons in STALLS.items()}
    total = sum(stalls.values())
    waits = {name: alone * stall / total for name, stall in stalls.items() if stall} if total else {}
    return usage.replace(single_warp_cycles=alone, issue_included=False, waits=waits, warps=held)


def _sum(counters: Counters, template: str, kinds: tuple[str, ...] = WAYS) -> float | None:
    found = [counters.get(template.format(kind)) for kind in kinds]
    return None if all(one is None for one in found) else sum(one or 0.0 for one in found)


def _times(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _ideal(requests: float | None, sectors: float | None, useful: float | None) -> float | None:
    """Sectors that the bytes would fit into; lanes that ask for the same byte share it."""
    if sectors is None or useful is None or requests is None:
        return None
    return min(sectors, max(requests, useful / SECTOR_BYTES))
