"""Which cause is named first, what it would gain, and when nothing is named."""

from __future__ import annotations

import msgspec
import pytest
from advise_samples import dry, load, record, side
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.advise.advisor import advise
from pytest_gpuperf.advise.usage_from_counters import STALL

EXACT = {
    "smsp__inst_executed.sum": 2e7, "smsp__thread_inst_executed.sum": 6.4e8,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2e6, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 1e6,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 8e6,
    "smsp__sass_data_bytes_mem_global_op_ld.sum": 2.56e8, "smsp__sass_data_bytes_mem_global_op_st.sum": 1.28e8,
    "smsp__sass_inst_executed_op_global_ld.sum": 2e6, "smsp__sass_inst_executed_op_global_st.sum": 1e6,
    "smsp__sass_inst_executed_op_shared_ld.sum": 1e6, "smsp__sass_inst_executed_op_shared_st.sum": 1e6,
    "memory_l1_wavefronts_shared": 2e6, "memory_l1_wavefronts_shared_ideal": 2e6,
}  # fmt: skip
NEAR = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 4e6, "lts__t_sectors.sum": 1.2e7,
    "dram__bytes_read.sum": 2.56e8, "dram__bytes_write.sum": 1.28e8,
}  # fmt: skip
NOISY = {
    "sm__cycles_elapsed.max": 2e5, "smsp__warps_active.avg.per_cycle_active": 14.0,
    "smsp__issue_active.avg.per_cycle_active": 0.2, "dram__throughput.avg.pct_of_peak_sustained_elapsed": 85.0,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 45.0,
    "l1tex__throughput.avg.pct_of_peak_sustained_active": 30.0,
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": 12.0,
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active": 15.0,
    STALL.format("long_scoreboard"): 30.0, STALL.format("wait"): 3.0, STALL.format("barrier"): 1.0,
    STALL.format("short_scoreboard"): 2.0, STALL.format("lg_throttle"): 1.0,
}  # fmt: skip


def static(code: str, *accesses, executed=None, **figures):  # type: ignore[no-untyped-def]
    kept = {name: figures.pop(name) for name in ("cycles", "lanes", "divisions", "waits") if name in figures}
    return side(record(code, **figures), estimate=dry(executed, *accesses, **kept))


def test_the_machine_code_names_uncoalesced_access_first() -> None:
    before = static("a", load(), load(op="global_store", times=1))
    after = static("b", load(sectors=32.0), load(op="global_store", times=1))
    (advice, *_) = advise(before, after)
    assert (advice.cause, advice.counted, advice.arch) == ("uncoalesced access", False, "sm_90")
    assert 0.5 < advice.gain < 1
    timed = (msgspec.structs.replace(one, time_ns=time) for one, time in ((before, 100.0), (after, 110.0)))
    assert advise(*timed)[0].gain == pytest.approx(1 - 100 / 110, abs=1e-3)  # times bound it


def test_a_grid_that_leaves_schedulers_few_warps_exposes_latency_without_a_gpu() -> None:
    full, few = (msgspec.structs.replace(static("a", load(), cycles=4000.0), grid=(n, 1, 1)) for n in (1056, 132))
    assert advise(full, few)[0].cause == "exposed latency"
    assert advise(few, full) == ()
    assert advise(full, full) == ()


def test_a_cause_is_outweighed_where_the_whole_became_faster() -> None:
    """From scattered stores to a tile with conflicts is a gain, and the conflicts are worth a word nevertheless."""
    turns = load(op="shared_load", times=4.0), load(op="shared_store", times=4.0)
    conflicts = [msgspec.structs.replace(one, turns=8.0, sectors=None) for one in turns]
    free = [msgspec.structs.replace(one, turns=1.0, sectors=None) for one in turns]
    scattered = static("a", load(sectors=32.0), *free)
    found = advise(scattered, static("b", load(), *conflicts))
    assert [(one.cause, one.outweighed) for one in found] == [("bank conflicts", True)]
    same = advise(static("c", load(), *free), static("b", load(), *conflicts))
    assert [(one.cause, one.outweighed) for one in same] == [("bank conflicts", False)]


def counted(code: str, counters: dict[str, float], **figures):  # type: ignore[no-untyped-def]
    return side(record(code, **figures), estimate=dry(), counters=counters)


noise = st.floats(0.9, 1.1)
small = st.floats(0.985, 1.015)


@st.composite
def again(draw: st.DrawFn) -> dict[str, float]:
    """The same work counted once more: exact counters the same, the others within their noise."""
    near = {name: value * draw(small) for name, value in NEAR.items()}
    noisy = {name: value * draw(noise) for name, value in NOISY.items()}
    return {**EXACT, **near, **noisy}


@given(again(), again())
def test_the_same_work_counted_twice_has_no_cause(before: dict[str, float], after: dict[str, float]) -> None:
    assert advise(counted("a", before), counted("a", after)) == ()
    assert advise(side(None, counters=before), side(None, counters=after)) == ()  # of a callable
