"""What the claims read from the counters of Nsight Compute: named figures of one measured workload.

Every metric that a test of this suite reads stands here, and nowhere else: ``METRICS`` is what a run must collect for
all claims to be looked at.  Names are those of Hopper.  Nothing here says what a figure should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

Direction = Literal["ld", "st"]
"""Loads or stores."""

STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
"""What a resident warp does in a cycle: ``selected`` it issues, otherwise it waits for this."""
PIPES = ("alu", "fma", "lsu", "xu")
"""Of an SM, by the instructions they execute; FP64 is asked for by its cycles."""

METRICS = (
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__m_l1tex2xbar_write_bytes.sum",
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    *(f"l1tex__t_requests_pipe_lsu_mem_{space}_op_{way}.sum" for space in ("global", "local") for way in ("ld", "st")),
    *(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum" for way in ("ld", "st")),
    "l1tex__t_sector_hit_rate.pct",
    *(f"lts__t_requests_srcunit_tex_op_{way}.sum" for way in ("read", "write")),
    *(f"lts__t_sectors_srcunit_tex_op_{way}.sum" for way in ("read", "write")),
    "lts__t_sector_hit_rate.pct",
    *(f"lts__t_sector_op_{way}_hit_rate.pct" for way in ("read", "write")),
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
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "smsp__sass_data_bytes_mem_shared_op_st.sum",
    *(f"smsp__sass_inst_executed_op_{space}_{way}.sum" for space in ("global", "shared") for way in ("ld", "st")),
    *(f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{way}.sum" for way in ("ld", "st")),
    *(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("fadd", "fmul", "ffma")),
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "smsp__warps_active.avg.per_cycle_active",
    "smsp__warps_eligible.avg.per_cycle_active",
)
