"""What the claims read from the counters of Nsight Compute: named figures of one measured workload.

Every metric that a test of this suite reads is named in ``hopper_metrics.py`` and read here, so that a run can be told
to collect them all and a misspelt one is an error.  Nothing here says what a figure should be.
"""

from __future__ import annotations

from typing import Literal

from hopper_metrics import METRICS, PIPES, STALLS, Direction, Measured, reading

__all__ = ["METRICS", "PIPES", "STALLS"]

# --- memory --------------------------------------------------------------------------------------


def requests(of: Measured, way: Direction) -> float:
    """Global loads or stores of a warp, as the L1 received them."""
    return reading(of, f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum")


def sectors(of: Measured, way: Direction) -> float:
    """Sectors of 32 bytes that these touched."""
    return reading(of, f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum")


def sectors_per_request(of: Measured, way: Direction) -> float:
    """4 for 32 floats in a row, 32 for 32 that are far apart."""
    return sectors(of, way) / requests(of, way)


def bytes_asked_for(of: Measured) -> float:
    """By global loads."""
    return reading(of, "smsp__sass_data_bytes_mem_global_op_ld.sum")


def bytes_used_per_sector(of: Measured) -> float:
    """By global loads, of 32."""
    return bytes_asked_for(of) / sectors(of, "ld")


def l2_requests(of: Measured, way: Direction) -> float:
    """From the L1 caches; of one cache line each."""
    return reading(of, f"lts__t_requests_srcunit_tex_op_{'read' if way == 'ld' else 'write'}.sum")


def l2_sectors(of: Measured, way: Direction) -> float:
    """That the L1 caches asked for or sent."""
    return reading(of, f"lts__t_sectors_srcunit_tex_op_{'read' if way == 'ld' else 'write'}.sum")


def bytes_from_l2_to_l1(of: Measured) -> float:
    return reading(of, "l1tex__m_xbar2l1tex_read_bytes.sum")


def bytes_from_l1_to_l2(of: Measured) -> float:
    return reading(of, "l1tex__m_l1tex2xbar_write_bytes.sum")


def bytes_read_from_dram(of: Measured) -> float:
    return reading(of, "dram__bytes_read.sum")


def bytes_written_to_dram(of: Measured) -> float:
    return reading(of, "dram__bytes_write.sum")


def dram_bytes(of: Measured) -> float:
    return bytes_read_from_dram(of) + bytes_written_to_dram(of)


def l1_hit_rate(of: Measured) -> float:
    """Percent of all sectors."""
    return reading(of, "l1tex__t_sector_hit_rate.pct")


def l2_hit_rate(of: Measured) -> float:
    """Percent of all sectors."""
    return reading(of, "lts__t_sector_hit_rate.pct")


def l2_hit_rate_of(of: Measured, way: Direction) -> float:
    """Percent of the sectors that were read, or written."""
    return reading(of, f"lts__t_sector_op_{'read' if way == 'ld' else 'write'}_hit_rate.pct")


def memory_instructions(of: Measured, space: Literal["global", "local", "shared"], way: Direction) -> float:
    """Loads or stores that warps executed."""
    return reading(of, f"smsp__sass_inst_executed_op_{space}_{way}.sum")


def local_accesses(of: Measured) -> float:
    return memory_instructions(of, "local", "ld") + memory_instructions(of, "local", "st")


def wavefronts_per_shared_access(of: Measured, way: Direction) -> float:
    """Turns that a load or store of shared memory takes; 1 for one word per lane without conflicts."""
    wavefronts = reading(of, f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{way}.sum")
    return wavefronts / memory_instructions(of, "shared", way)


def bytes_to_shared(of: Measured) -> float:
    """Stored by all lanes."""
    return reading(of, "smsp__sass_data_bytes_mem_shared_op_st.sum")


def bank_conflicts(of: Measured) -> float:
    """Of shared loads, by the hardware's own counter, which counts lost arbitrations as well."""
    return reading(of, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")


# --- instructions --------------------------------------------------------------------------------


def instructions(of: Measured) -> float:
    """That warps executed."""
    return reading(of, "smsp__inst_executed.sum")


def active_lanes(of: Measured) -> float:
    """Threads of a warp that an instruction ran for, on average."""
    return reading(of, "smsp__thread_inst_executed.sum") / instructions(of)


def lanes_not_predicated_off(of: Measured) -> float:
    """Those of them that their predicate let do it."""
    return reading(of, "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio")


def divergent_targets(of: Measured) -> float:
    """Times that the lanes of a warp went different ways at a branch."""
    return reading(of, "smsp__sass_branch_targets_threads_divergent.sum")


def special_instructions(of: Measured) -> float:
    """On the unit for reciprocals, roots and conversions."""
    return reading(of, "sm__inst_executed_pipe_xu.sum")


def tensor_instructions(of: Measured) -> float:
    """HMMA; without the packed half-precision multiply-adds that its counter includes."""
    packed = reading(of, "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum")
    return reading(of, "sm__inst_executed_pipe_tensor_op_hmma.sum") - packed


def single_precision_operations(of: Measured) -> float:
    """Of all threads; a multiply-add is two."""
    counts = {
        op: reading(of, f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum") for op in ("fadd", "fmul", "ffma")
    }
    return counts["fadd"] + counts["fmul"] + 2 * counts["ffma"]


# --- how busy it is ------------------------------------------------------------------------------


def cycles(of: Measured) -> float:
    """Of an SM, from the launch to the end."""
    return reading(of, "sm__cycles_elapsed.max")


def sm_throughput(of: Measured) -> float:
    """Percent of the peak of the SM's busiest unit."""
    return reading(of, "sm__throughput.avg.pct_of_peak_sustained_elapsed")


def memory_throughput(of: Measured) -> float:
    """Percent of the peak of the busiest part of the memory system, caches included."""
    return reading(of, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")


def l1_throughput(of: Measured) -> float:
    """Percent of the peak."""
    return reading(of, "l1tex__throughput.avg.pct_of_peak_sustained_active")


def l2_throughput(of: Measured) -> float:
    """Percent of the peak."""
    return reading(of, "lts__throughput.avg.pct_of_peak_sustained_elapsed")


def dram_throughput(of: Measured) -> float:
    """Percent of the peak."""
    return reading(of, "dram__throughput.avg.pct_of_peak_sustained_elapsed")


def pipe_busy(of: Measured, pipe: str) -> float:
    """Percent of what one of ``PIPES`` could execute."""
    return reading(of, f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active")


def fp64_busy(of: Measured) -> float:
    """Percent of cycles."""
    return reading(of, "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active")


def instructions_per_cycle(of: Measured) -> float:
    """Of an SM, while it has work; 4 at most."""
    return reading(of, "sm__inst_executed.avg.per_cycle_active")


def achieved_occupancy(of: Measured) -> float:
    """Percent."""
    return reading(of, "sm__warps_active.avg.pct_of_peak_sustained_active")


def theoretical_occupancy(of: Measured) -> float:
    """Percent."""
    return reading(of, "sm__maximum_warps_per_active_cycle_pct")


def active_warps(of: Measured) -> float:
    """Of a scheduler, while it has any."""
    return reading(of, "smsp__warps_active.avg.per_cycle_active")


def eligible_warps(of: Measured) -> float:
    """Those that could issue."""
    return reading(of, "smsp__warps_eligible.avg.per_cycle_active")


def issue_rate(of: Measured) -> float:
    """Share of a scheduler's cycles in which it issues."""
    return reading(of, "smsp__issue_active.avg.per_cycle_active")


def cycles_per_instruction(of: Measured) -> float:
    """Of one warp, from one of its instructions to the next."""
    return reading(of, "smsp__average_warp_latency_per_inst_issued.ratio")


def stall(of: Measured, reason: str) -> float:
    """Cycles of ``cycles_per_instruction`` that a warp waits for one of ``STALLS``."""
    return reading(of, f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio")


def stall_share(of: Measured, reason: str) -> float:
    """Of all that warps wait, and issue."""
    return stall(of, reason) / cycles_per_instruction(of)


def longest_stall(of: Measured, *besides: str) -> float:
    """Of the reasons other than those given.

    A warp that issues waits for nothing, nor does one that could, and was not selected because another one was.
    """
    return max(stall(of, reason) for reason in STALLS if reason not in (*besides, "selected", "not_selected"))
