"""What formulas read from the counters of Nsight Compute: named figures of one measured workload.

Every metric is named here, so that a run can collect them all and a misspelt one is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
"""What a resident warp waits for; ``selected`` is one that issues."""
CHOICES = MappingProxyType({
    "way": ("ld", "st"), "rw": ("read", "write"), "space": ("global", "local", "shared"), "reason": STALLS,
    "pipe": ("alu", "fma", "lsu", "xu"), "op": ("fadd", "fmul", "ffma"),
})  # fmt: skip
"""What may stand in the braces of a metric: loads or stores, pipes of an SM, ..."""
METRICS = MappingProxyType({
    # --- memory: warps' requests to the L1, and sectors of 32 bytes
    "requests": "l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum",
    "bytes_asked_for": "smsp__sass_data_bytes_mem_global_op_ld.sum",  # by global loads
    "l2_requests": "lts__t_requests_srcunit_tex_op_{rw}.sum",  # of one cache line each
    "l2_sectors": "lts__t_sectors_srcunit_tex_op_{rw}.sum",
    "bytes_from_l2_to_l1": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "bytes_from_l1_to_l2": "l1tex__m_l1tex2xbar_write_bytes.sum",
    "bytes_read_from_dram": "dram__bytes_read.sum",
    "bytes_written_to_dram": "dram__bytes_write.sum",
    "l1_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_rate": "lts__t_sector_hit_rate.pct",
    "l2_hit_rate_of": "lts__t_sector_op_{rw}_hit_rate.pct",
    "memory_instructions": "smsp__sass_inst_executed_op_{space}_{way}.sum",  # that warps executed
    "shared_wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{way}.sum",
    "bytes_to_shared": "smsp__sass_data_bytes_mem_shared_op_st.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",  # lost arbitrations as well
    # --- instructions
    "instructions": "smsp__inst_executed.sum",
    "thread_instructions": "smsp__thread_inst_executed.sum",
    "lanes_not_predicated_off": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "divergent_targets": "smsp__sass_branch_targets_threads_divergent.sum",
    "special_instructions": "sm__inst_executed_pipe_xu.sum",  # reciprocals, roots, conversions
    "hmma_instructions": "sm__inst_executed_pipe_tensor_op_hmma.sum",  # with packed multiply-adds
    "hfma2_instructions": "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",
    "float_instructions": "smsp__sass_thread_inst_executed_op_{op}_pred_on.sum",
    # --- how busy it is, in per cent of the peak
    "sm_throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2_throughput": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "pipe_busy": "sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active",
    "fp64_busy": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "theoretical_occupancy": "sm__maximum_warps_per_active_cycle_pct",
    # --- cycles of an SM, and of one of its schedulers
    "cycles": "sm__cycles_elapsed.max",
    "instructions_per_cycle": "sm__inst_executed.avg.per_cycle_active",
    "active_warps": "smsp__warps_active.avg.per_cycle_active",
    "eligible_warps": "smsp__warps_eligible.avg.per_cycle_active",
    "issue_rate": "smsp__issue_active.avg.per_cycle_active",
    "cycles_per_instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
    "stall": "smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",  # cycles of the one before
})  # fmt: skip


def figures() -> dict[str, Callable[..., float]]:
    """The functions of formulas by name, each of a workload: ``sectors(w("copy"), "st")``."""
    read = {name: _reader(metric) for name, metric in METRICS.items()}

    def shared(of: Any, way: str) -> float:
        return read["shared_wavefronts"](of, way) / read["memory_instructions"](of, "shared", way)

    def longest_stall(of: Any, *besides: str) -> float:
        waits = [reason for reason in STALLS if reason not in (*besides, "selected", "not_selected")]
        return max(read["stall"](of, reason) for reason in waits)

    return read | {
        "sectors_per_request": lambda of, way: read["sectors"](of, way) / read["requests"](of, way),
        "bytes_used_per_sector": lambda of: read["bytes_asked_for"](of) / read["sectors"](of, "ld"),
        "dram_bytes": lambda of: read["bytes_read_from_dram"](of) + read["bytes_written_to_dram"](of),
        "local_accesses": lambda of: sum(read["memory_instructions"](of, "local", way) for way in CHOICES["way"]),
        "wavefronts_per_shared_access": shared,
        "active_lanes": lambda of: read["thread_instructions"](of) / read["instructions"](of),
        "tensor_instructions": lambda of: read["hmma_instructions"](of) - read["hfma2_instructions"](of),
        "single_precision_operations": lambda of: sum(
            (2 if op == "ffma" else 1) * read["float_instructions"](of, op) for op in CHOICES["op"]
        ),
        "stall_share": lambda of, reason: read["stall"](of, reason) / read["cycles_per_instruction"](of),
        "longest_stall": longest_stall,
    }


def all_metrics() -> list[str]:
    """Every metric that a formula can read."""
    found = []
    for metric in METRICS.values():
        several = [metric]
        for name, words in CHOICES.items():
            if f"{{{name}}}" in metric:
                several = [one.replace(f"{{{name}}}", word) for one in several for word in words]
        found += several
    return sorted(set(found))


def _reader(metric: str) -> Callable[..., float]:
    names = [name for name in CHOICES if f"{{{name}}}" in metric]
    names.sort(key=lambda name: metric.index(f"{{{name}}}"))

    def read(of: Any, *given: str) -> float:
        words = {"ld": "read", "st": "write"} if names == ["rw"] else {}
        if len(given) != len(names):
            raise TypeError(f"{metric} takes {', '.join(names) or 'nothing else'}")
        chosen = {name: words.get(word, word) for name, word in zip(names, given, strict=True)}
        if unknown := [word for name, word in chosen.items() if word not in CHOICES[name]]:
            raise ValueError(f"{metric}: there is no {', '.join(unknown)}")
        return float(of.counter(metric.format(**chosen)))

    return read
