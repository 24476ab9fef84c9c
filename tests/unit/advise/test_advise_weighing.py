"""Which cause is named first, what it would gain, of what work its figures are, and when nothing is named."""

from __future__ import annotations

import msgspec
import pytest
from advise_samples import dry, load, record, side
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.advise.advisor import advise, proven_causes
from pytest_gpuperf.advise.comparison import Side, change
from pytest_gpuperf.advise.usage_from_code import scale_of
from pytest_gpuperf.advise.usage_from_counters import STALL
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

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


STORE = load(op="global_store", times=1.0)
UNKNOWN = Access(op="global_load", bytes=4, times=78.0)
"""Through a pointer that was spilled: nothing tells where it leads."""


def test_whole_numbers_keep_every_digit() -> None:
    for before, after, text in (
        (4096, 4224, "4096 -> 4224"), (64.0, 2928.0, "64 -> 2928"), (4.923, 242.34, "4.92 -> 242"),
        (12.5, 16383.6, "12.5 -> 16384"), (0, 1_234_567, "0 -> 1.23 M"),
    ):  # fmt: skip
        assert str(change("it", before, after)) == f"it {text}"


def walked(*accesses: Access) -> WarpEstimate:
    return dry({"fp32": 20.0, "local_load": 564.0}, *accesses)


def of_warps(run: WarpEstimate, warps: int) -> WarpEstimate:
    return msgspec.structs.replace(run, warps=warps)


def test_figures_are_scaled_to_the_work_that_a_warp_writes_or_reads() -> None:
    """What waits in memory for a second pass is no result, and a double is one element as a float is."""
    two, data = load(op="global_store", times=2.0), walked(UNKNOWN, load(times=50.0))
    written, double = walked(load(times=1.0), STORE), load(sectors=8.0, op="global_store", times=1, size=8)
    for before, after, scale in (
        (walked(STORE), walked(two), 0.5),
        (walked(load(times=1.0)), walked(load(times=2.0)), 0.5),
        (walked(STORE), walked(msgspec.structs.replace(two, scratch=two.distinct / 2)), 1.0),
        (walked(STORE), dry({"fp64": 100.0}, double), 1.0),
        # where data decide about addresses equal arguments are equal work
        (walked(load(times=128.0), STORE), walked(load(times=50.0), STORE, UNKNOWN), 1.0),
        (of_warps(data, 256), of_warps(data, 64), 0.25),
        (of_warps(written, 64), of_warps(written, 256), 1.0),
    ):  # fmt: skip
        assert scale_of(before, after) == scale


# --- causes that the machine code proves --------------------------------------------------------------


def tile(turns: float) -> tuple[Access, Access]:
    """A store to shared memory and the load behind it, with so many passes each."""
    accesses = load(op="shared_load", times=8.0), load(op="shared_store", times=8.0)
    store, read = (msgspec.structs.replace(one, turns=turns, sectors=None) for one in accesses)
    return store, read


def launched(code: str, turns: float, integers: float) -> Side:
    executed = {"integer": integers, "global_load": 4.0, "global_store": 1.0, "shared_load": 8.0, "shared_store": 8.0}
    accesses = load(), *tile(turns), load(op="global_store", times=1.0)
    return side(record(code), estimate=dry(executed, *accesses, launched=True))


def test_conflicts_of_known_accesses_are_a_proven_cause() -> None:
    for turns, integers, found in ((8.0, 200.0, True), (16.0, 100.0, True), (1.0, 100.0, False)):
        proven = proven_causes(launched("a", 1.0, 200.0), launched("b", turns, integers))
        assert [one.what for one in proven] == ["passes per shared-memory access"] * found
