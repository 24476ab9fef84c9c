"""Figures of a cause agree with the lines above them, and counts are called those of a warp where they are."""

from __future__ import annotations

import msgspec
from advise_samples import dry, load, record, side

from pytest_gpuperf.advise.advisor import proven_causes
from pytest_gpuperf.advise.comparison import Side, change
from pytest_gpuperf.advise.usage_from_code import resident_warps, scale_of, static_usage
from pytest_gpuperf.model.warp_estimate import Access, WarpEstimate

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


def test_a_load_on_a_side_that_data_decide_is_one_of_half_a_warp() -> None:
    """Executed twice, once on each side; together they ask for what one would."""
    sides = static_usage(side(record("a")), dry({"global_load": 2.0}, load(times=1.0)))
    assert sides.load_lanes == 16
    assert static_usage(side(record("a")), dry({"global_load": 2.0}, load(times=2.0))).load_lanes == 32
    assert static_usage(side(record("a")), dry({"fp32": 2.0})).load_lanes is None


def test_without_a_gpu_a_grid_is_spread_over_the_sms_of_a_typical_one() -> None:
    small = side(record("a"), grid=(132, 1, 1))
    assert resident_warps(small, 16.0) == 2.0  # a block of 8 warps for each of 132 SMs
    assert resident_warps(side(record("a"), grid=(132, 1, 1), sm_count=66), 16.0) == 4.0
    assert resident_warps(side(record("a"), grid=(10**6, 1, 1)), 16.0) == 16.0
    assert resident_warps(side(record("a")), 16.0) == 16.0


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
