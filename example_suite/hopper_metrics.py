"""The metrics of Nsight Compute that the suite reads, by their names on Hopper, and how one is read.

What they say of a workload is in ``counters.py``.  Some are in none of the plugin's sets; this prints all of them:

    pytest --gpuperf-ncu=$(python example_suite/hopper_metrics.py) example_suite
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from claims import NotCollected

Direction = Literal["ld", "st"]
"""Load or store."""

STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
"""What a resident warp waits for; ``selected`` is one that issues."""
PIPES = ("alu", "fma", "lsu", "xu")
"""Of an SM: integers and comparisons, multiply-adds, loads and stores, special functions."""

METRICS = frozenset({
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__m_l1tex2xbar_write_bytes.sum",
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "lts__t_requests_srcunit_tex_op_read.sum",
    "lts__t_requests_srcunit_tex_op_write.sum",
    "lts__t_sector_hit_rate.pct",
    "lts__t_sector_op_read_hit_rate.pct",
    "lts__t_sector_op_write_hit_rate.pct",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__cycles_elapsed.max",
    "sm__inst_executed.avg.per_cycle_active",
    *(f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active" for pipe in PIPES),
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",
    "sm__inst_executed_pipe_xu.sum",
    "sm__maximum_warps_per_active_cycle_pct",
    "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warp_latency_per_inst_issued.ratio",
    *(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in STALLS),
    "smsp__inst_executed.sum",
    "smsp__issue_active.avg.per_cycle_active",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "smsp__sass_data_bytes_mem_global_op_ld.sum",
    "smsp__sass_data_bytes_mem_shared_op_st.sum",
    "smsp__sass_inst_executed_op_global_ld.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
    "smsp__sass_inst_executed_op_local_ld.sum",
    "smsp__sass_inst_executed_op_local_st.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "smsp__warps_active.avg.per_cycle_active",
    "smsp__warps_eligible.avg.per_cycle_active",
})  # fmt: skip


class Measured(Protocol):
    """A workload that ``gpuperf`` measured."""

    @property
    def counters(self) -> Mapping[str, float]: ...


def reading(of: Measured, metric: str) -> float:
    """One raw counter.  Raises ``NotCollected`` if this run did not ask for it, ``ValueError`` if none could."""
    if metric not in METRICS:
        raise ValueError(
            f"{metric} is none of the metrics that this suite reads: add it to METRICS in hopper_metrics.py"
        )
    try:
        return of.counters[metric]
    except KeyError:
        raise NotCollected(metric) from None


if __name__ == "__main__":
    print(",".join(sorted(METRICS)))
