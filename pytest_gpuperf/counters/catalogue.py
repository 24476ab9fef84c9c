"""The metrics that this plugin knows, the sets that a run asks for, and tests' own tolerances.

Names are those of GH100; ``NAMES`` has those of other GPUs.  A metric's class says what may be concluded
from a change of it.  *Exact* metrics are the same in every run of the same code on the same inputs: counts of
what the code does.  *Near-exact* ones also depend on what was in the caches, on which block ran where and on where
in the memory of which GPU the data lie.  The others inform: they depend on clocks and on scheduling.  The bands are
wider than what nine H200s differed by on equal code (docs/how-to/counters.md).
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Iterable, Mapping

from pytest_gpuperf.judge.counters import Better, Metric
from pytest_gpuperf.model.architectures import ARCHITECTURES, plain
from pytest_gpuperf.model.time_record import CacheMode

STORES, LOCAL, DRAM, L2 = (0.02, 2048.0), (0.02, 256.0), (0.2, 4.0 * 2**20), (0.15, 65536.0)
"""Relative and absolute bands of near-exact metrics."""


def _executed(name: str, what: str) -> Metric:
    return Metric(name, f"{what} executed", "instructions", tolerance=0.001)


def _near(name: str, what: str, unit: str, band: tuple[float, float]) -> Metric:
    return Metric(name, what, unit, "lower", *band)


def _work(name: str, what: str, unit: str) -> Metric:
    """Exact, and neither more nor less of it is better by itself."""
    return Metric(name, what, unit, "neutral")


def _info(name: str, what: str, unit: str = "%", better: Better = "neutral") -> Metric:
    return Metric(name, what, unit, better, None)


DURATION = _info("gpu__time_duration.sum", "duration under ncu", "ns")
CYCLES = _info("sm__cycles_elapsed.max", "SM cycles", "cycles")
PASSES = _info("profiler__replayer_passes", "replay passes", "")
ACHIEVED_OCCUPANCY = _info("sm__warps_active.avg.pct_of_peak_sustained_active", "achieved occupancy", better="higher")
DRAM_THROUGHPUT = _info("dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM throughput")
INSTRUCTIONS = _executed("smsp__inst_executed.sum", "instructions")
THREAD_INSTRUCTIONS = _executed("smsp__thread_inst_executed.sum", "thread instructions")
DRAM_READ = _near("dram__bytes_read.sum", "DRAM bytes read", "bytes", DRAM)
DRAM_WRITE = _near("dram__bytes_write.sum", "DRAM bytes written", "bytes", DRAM)
L2_SECTORS = _near("lts__t_sectors.sum", "L2 sectors", "sectors", L2)
L2_READ = _near("lts__t_sectors_op_read.sum", "L2 sectors read", "sectors", L2)
L2_WRITE = _near("lts__t_sectors_op_write.sum", "L2 sectors written", "sectors", L2)
L2_BYTES = _near("lts__t_bytes.sum", "L2 bytes", "bytes", (L2[0], 32 * L2[1]))

LOAD_REQUESTS = Metric("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "global load requests", "requests")
STORE_REQUESTS = Metric("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "global store requests", "requests")
LOAD_SECTORS = Metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "global load sectors", "sectors")
STORE_SECTORS = _near("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "global store sectors", "sectors", STORES)
LOCAL_SECTORS = (
    _near("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "local load sectors", "sectors", LOCAL),
    _near("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", "local store sectors", "sectors", LOCAL),
)
SHARED_LOAD_WAVEFRONTS, SHARED_STORE_WAVEFRONTS = (
    Metric(f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{way}.sum", what, "wavefronts")
    for way, what in (("ld", "shared load wavefronts"), ("st", "shared store wavefronts"))
)
SHARED_WAVEFRONTS = Metric("memory_l1_wavefronts_shared", "shared wavefronts", "wavefronts")
SHARED_WAVEFRONTS_IDEAL = _work(
    "memory_l1_wavefronts_shared_ideal", "shared wavefronts without conflicts", "wavefronts"
)
GLOBAL_LOADS, GLOBAL_STORES, SHARED_LOADS, SHARED_STORES, LOCAL_LOADS, LOCAL_STORES, BRANCHES = (
    _executed(f"smsp__sass_inst_executed_op_{kind}.sum", what)
    for kind, what in (
        ("global_ld", "global loads"), ("global_st", "global stores"), ("shared_ld", "shared loads"),
        ("shared_st", "shared stores"), ("local_ld", "local loads"), ("local_st", "local stores"),
        ("branch", "branches"),
    )
)  # fmt: skip
DIVERGENT_TARGETS = Metric(
    "smsp__sass_branch_targets_threads_divergent.sum", "divergent branch targets", "targets", tolerance=0.001
)
UNIFORM_TARGETS = _work("smsp__sass_branch_targets_threads_uniform.sum", "uniform branch targets", "targets")
USEFUL_LOAD_BYTES = _work("smsp__sass_data_bytes_mem_global_op_ld.sum", "bytes asked for by global loads", "bytes")
USEFUL_STORE_BYTES = _work("smsp__sass_data_bytes_mem_global_op_st.sum", "bytes given by global stores", "bytes")

OPERATIONS = {
    kind: _work(f"smsp__sass_thread_inst_executed_op_{kind}_pred_on.sum", f"{kind} operations", "operations")
    for kind in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hfma", "integer")
}

STALLS = {
    reason: _info(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",
                  f"warps stalled: {reason.replace('_', ' ')}", "warps per issue")
    for reason in (
        "long_scoreboard", "wait", "barrier", "lg_throttle", "short_scoreboard", "math_pipe_throttle", "mio_throttle",
        "not_selected", "selected", "no_instruction", "branch_resolving", "dispatch_stall", "drain", "imc_miss",
        "membar", "misc", "sleeping", "tex_throttle", "gmma",
    )
}  # fmt: skip
"""Reasons for which warps wait; ``selected`` is no wait, it completes the whole."""

SCHEDULERS = (
    _info("smsp__warps_active.avg.per_cycle_active", "active warps per scheduler", "warps"),
    _info("smsp__warps_eligible.avg.per_cycle_active", "eligible warps per scheduler", "warps", "higher"),
    _info("smsp__issue_active.avg.per_cycle_active", "issues per cycle and scheduler", "", "higher"),
    _info("smsp__average_warp_latency_per_inst_issued.ratio", "cycles between two issues of a warp", "cycles"),
)

PIPES = tuple(
    _info(f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active", f"pipe {pipe.replace('_', ' ')}")
    for pipe in ("alu", "fma", "fma_type_fp16", "fp64", "lsu", "xu", "uniform", "tensor")
)

THROUGHPUTS = (
    _info("sm__throughput.avg.pct_of_peak_sustained_elapsed", "SM throughput"),
    _info("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "memory throughput"),
    _info("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1 throughput"),
    _info("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 throughput"),
)

HIT_RATES = (
    _info("l1tex__t_sector_hit_rate.pct", "L1 hit rate", better="higher"),
    _info("lts__t_sector_hit_rate.pct", "L2 hit rate", better="higher"),
)

_DEFAULT = (
    PASSES, DURATION, CYCLES, INSTRUCTIONS, THREAD_INSTRUCTIONS, LOAD_SECTORS, STORE_SECTORS, L2_SECTORS, L2_READ,
    L2_WRITE, DRAM_READ, DRAM_WRITE, DRAM_THROUGHPUT, ACHIEVED_OCCUPANCY,
)  # fmt: skip
_MEMORY = (
    LOAD_REQUESTS, STORE_REQUESTS, *LOCAL_SECTORS, *HIT_RATES, SHARED_LOAD_WAVEFRONTS,
    SHARED_STORE_WAVEFRONTS, SHARED_WAVEFRONTS, SHARED_WAVEFRONTS_IDEAL, GLOBAL_LOADS, GLOBAL_STORES, SHARED_LOADS,
    SHARED_STORES, LOCAL_LOADS, LOCAL_STORES, USEFUL_LOAD_BYTES, USEFUL_STORE_BYTES,
)  # fmt: skip
_COMPUTE = (BRANCHES, DIVERGENT_TARGETS, UNIFORM_TARGETS, *OPERATIONS.values(), *PIPES)
_LATENCY = (*SCHEDULERS, *STALLS.values())

SETS: Mapping[str, tuple[Metric, ...]] = {
    "default": _DEFAULT,
    "memory": (*_DEFAULT, *_MEMORY),
    "compute": (*_DEFAULT, *_COMPUTE),
    "latency": (*_DEFAULT, *_LATENCY),
    "full": (*_DEFAULT, *_MEMORY, *_COMPUTE, *_LATENCY, *THROUGHPUTS, L2_BYTES),
}
"""Sets of metrics that a run may ask for by one word.

``default`` is what fits into one pass (two on TU10x): no kernel runs twice for it, and ncu has no memory to save
and restore.  The others take 5, 4, 7 and about 16 passes, and one more for what is counted by patched code.
"""

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in SETS["full"]}


# --- what a run and its tests ask for ---------------------------------------------------------------

TRAFFIC = ("dram__", "lts__")
"""Beginnings of metrics that depend on what the caches held."""


def names_of(asked: Iterable[str]) -> tuple[str, ...]:
    """The metrics behind names of sets and of metrics, each once, in order."""
    names = ([metric.name for metric in SETS[word]] if word in SETS else [word] for word in asked)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(names)))


def rules_for(names: Iterable[str], own: Mapping[str, float | None], cache: CacheMode) -> list[Metric]:
    """Rules that compare the named metrics; ``own`` tolerances replace the catalogue's.

    Where it does not say which way is better, more is if the tolerance is negative: ``-0.05`` allows a fall by 5 %.
    Of a warm workload, traffic of the L2 and of DRAM informs only: it depends on how many passes ncu runs a kernel in.
    """
    rules = []
    for name in names:
        rule = METRICS.get(name) or Metric(name, name, better="neutral", tolerance=None)
        tolerance = own.get(name)
        if tolerance is not None:
            better: Better = "lower" if tolerance >= 0 else "higher"
            better = better if rule.better == "neutral" else rule.better
            rule = dataclasses.replace(rule, better=better, tolerance=abs(tolerance), floor=0.0)
        elif cache == "warm" and name.startswith(TRAFFIC):
            rule = dataclasses.replace(rule, tolerance=None)
        rules.append(rule)
    return rules


def hint(name: str) -> str:
    """``; did you mean ...?`` where the catalogue has something like it, else empty."""
    close = difflib.get_close_matches(name, list(METRICS), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""


# --- names on other chips ------------------------------------------------------------------------


REFERENCE = "GH100"

_NO_GMMA = {"smsp__average_warps_issue_stalled_gmma_per_issue_active": ""}
_NO_IMC_MISS = {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active": ""}
_OWN_FP16_PIPE = {"sm__inst_executed_pipe_fma_type_fp16": "sm__inst_executed_pipe_fp16"}
_NO_DRAM = {"dram__bytes_read": "", "dram__bytes_write": "", "dram__throughput": ""}
_DRAM_OPERATIONS = {"dram__bytes_read": "dram__bytes_op_read", "dram__bytes_write": "dram__bytes_op_write"}

NAMES: Mapping[str, Mapping[str, str]] = {
    "TU102": {**_NO_GMMA, **_OWN_FP16_PIPE},
    "GA100": {**_NO_GMMA, **_OWN_FP16_PIPE},
    "GA102": _NO_GMMA,
    "GA10B": {**_NO_GMMA, **_NO_DRAM},
    "AD102": _NO_GMMA,
    "GH100": {},
    "GB100": {**_NO_GMMA, **_NO_IMC_MISS},
    "GB110": {**_NO_GMMA, **_NO_IMC_MISS},
    "GB10B": {**_NO_GMMA, **_NO_IMC_MISS, **_NO_DRAM},
    "GB20B": {**_NO_GMMA, **_NO_IMC_MISS, **_NO_DRAM},
    "GB202": {**_NO_GMMA, **_NO_IMC_MISS, **_DRAM_OPERATIONS},
}
"""By chip: GH100's name without its suffix, and the chip's own; empty: the chip has none."""


def chip_of(arch: str) -> str:
    """The chip that lends its names to an architecture; GH100 for one that the table does not have."""
    known = ARCHITECTURES.get(plain(arch))
    return known.chip if known else REFERENCE


def on_chip(name: str, chip: str) -> str | None:
    """The chip's own name of a metric; None if it has none."""
    base, dot, suffix = name.partition(".")
    own = NAMES[chip].get(base, base)
    return f"{own}{dot}{suffix}" if own else None


def canonical(name: str, chip: str) -> str:
    """GH100's name of a metric that the chip calls ``name``."""
    base, dot, suffix = name.partition(".")
    back = {own: reference for reference, own in NAMES[chip].items() if own}
    return f"{back.get(base, base)}{dot}{suffix}"
