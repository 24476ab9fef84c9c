"""Figures of a cause agree with the lines above them, and counts are called those of a warp where they are."""

from __future__ import annotations

import msgspec
import pytest
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


@pytest.mark.parametrize("unknown", [UNKNOWN, Access(op="global_store", bytes=4, times=1.0)])
def test_work_is_equal_where_data_decide_about_some_addresses(unknown: Access) -> None:
    known = (load(times=128.0), STORE)
    rest = load(times=50.0), *([STORE] if unknown.op == "global_load" else []), unknown
    assert scale_of(walked(load(times=128.0)), walked(rest[0], unknown)) == 1.0
    assert scale_of(walked(*known), walked(*rest)) == 1.0
    assert scale_of(walked(*rest), walked(*known)) == 1.0


def test_where_data_decide_equal_arguments_are_equal_work() -> None:
    few, many = (msgspec.structs.replace(walked(UNKNOWN, load(times=50.0)), warps=warps) for warps in (64, 256))
    assert scale_of(many, few) == 0.25
    assert scale_of(few, many) == 4.0
    written = [msgspec.structs.replace(walked(load(times=1.0), STORE), warps=warps) for warps in (64, 256)]
    assert scale_of(*written) == 1.0  # each warp writes as much: more warps are more work


def test_what_waits_in_memory_is_no_work() -> None:
    """A value stored for the second pass of a thread is not a second result."""
    both = load(op="global_store", times=2.0)
    assert scale_of(walked(STORE), walked(msgspec.structs.replace(both, scratch=both.distinct / 2))) == 1.0
    assert scale_of(walked(STORE), walked(both)) == 0.5


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


def test_a_double_is_one_element_as_a_float_is() -> None:
    double = load(sectors=8.0, op="global_store", times=1, size=8)
    assert scale_of(walked(STORE), dry({"fp64": 100.0}, double)) == 1.0


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
