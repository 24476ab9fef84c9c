"""One rule at a time: it speaks on its evidence and is silent just below its threshold."""

from __future__ import annotations

import pytest
from advise_samples import COPY, case, dry, record, side

from pytest_gpuperf.advise import compute_rules as compute
from pytest_gpuperf.advise import memory_rules as memory
from pytest_gpuperf.advise import waiting_rules as waiting
from pytest_gpuperf.advise.advisor import RULES
from pytest_gpuperf.advise.comparison import Side

BELOW = 0.999
"""Just short of a threshold."""
TILE = COPY.replace(shared_requests=4.0, shared_turns=4.0, shared_ideal=4.0, shared_width=4.0)


def test_every_rule_has_a_test() -> None:
    tests = {name for name in globals() if name.startswith("test_")}
    assert {rule.__name__ for rule in RULES} <= {name.removeprefix("test_") for name in tests}


def test_register_spilling() -> None:
    after = side(record("b", spill_store_bytes=64, spill_load_bytes=64, stack_bytes=64))
    now = COPY.replace(local_requests=32.0, issued=132.0)
    found = memory.register_spilling(case(now=now, after=after))
    assert found is not None
    assert (found.evidence[0].before, found.evidence[0].after) == (0, 128)
    assert found.without.local_requests == 0
    assert found.without.issued == 100
    assert memory.register_spilling(case()) is None
    assert memory.register_spilling(case(before=after, after=after)) is None


def test_register_spilling_where_nobody_counted_spills() -> None:
    unknown = {"spill_store_bytes": None, "spill_load_bytes": None}
    before, after = side(record("a", **unknown)), side(record("b", stack_bytes=64, **unknown))
    now = COPY.replace(local_requests=32.0)
    found = memory.register_spilling(case(now=now, before=before, after=after))
    assert found is not None
    assert str(found.evidence[0]) == "stack bytes per thread 0 -> 64"
    assert memory.register_spilling(case(before=before, after=after)) is None
    assert memory.stack(case(now=now, before=before, after=after)) is None


def test_stack() -> None:
    after = side(record("b", stack_bytes=16))
    found = memory.stack(case(now=COPY.replace(local_requests=82.0), after=after))
    assert found is not None
    assert found.cause == "stack from run-time indexing"
    assert memory.stack(case(now=COPY, after=after)) is None  # a stack that nobody touches
    spilled = side(record("b", stack_bytes=16, spill_store_bytes=16))
    assert memory.stack(case(now=COPY.replace(local_requests=82.0), after=spilled)) is None


def test_stack_of_an_address_that_is_taken() -> None:
    written, now = {"local_store": 1}, COPY.replace(local_requests=1.0)
    printf = case(now=now, after=side(record("b", stack_bytes=8, opcodes=written)))
    found = memory.stack(printf)
    assert found is not None
    assert (found.cause, found.gates) == ("address of a local variable", True)
    indexed = case(now=now, after=side(record("b", stack_bytes=8, opcodes={**written, "local_load": 1})))
    found = memory.stack(indexed)
    assert found is not None
    assert found.cause == "stack from run-time indexing"


def test_uncoalesced() -> None:
    found = memory.uncoalesced(case(now=COPY.replace(global_sectors=160.0)))
    assert found is not None
    assert [(c.before, c.after) for c in found.evidence] == [(4, 32), (32, 4)]
    assert found.without.global_sectors == 20
    assert memory.uncoalesced(case(now=COPY.replace(global_sectors=20.0 * memory.SECTOR_GROWTH * BELOW))) is None
    wide = COPY.replace(global_sectors=80.0, global_ideal=80.0)  # 16 bytes per lane take 16 sectors, and should
    assert memory.uncoalesced(case(now=wide)) is None


def test_uncoalesced_shows_no_figure_that_became_better() -> None:
    wide = COPY.replace(global_width=5.0, global_sectors=25.0, global_ideal=25.0)
    narrow = COPY.replace(global_requests=6.5, global_sectors=32.0, global_ideal=25.0)
    found = memory.uncoalesced(case(wide, narrow))
    assert found is not None
    assert [figure.what for figure in found.evidence] == ["bytes used of each sector"]


def test_bank_conflicts() -> None:
    found = memory.bank_conflicts(case(TILE, TILE.replace(shared_turns=128.0)))
    assert found is not None
    assert (found.evidence[0].before, found.evidence[0].after) == (1, 32)
    assert found.without.shared_turns == 4
    assert memory.bank_conflicts(case(TILE, TILE.replace(shared_turns=4.0 * memory.CONFLICT_GROWTH * BELOW))) is None
    wide = TILE.replace(shared_turns=16.0, shared_ideal=16.0)
    assert memory.bank_conflicts(case(TILE, wide)) is None


def test_redundant_traffic() -> None:
    now = COPY.replace(global_requests=61.0, global_bytes=7808.0, global_sectors=244.0, issued=156.0)
    found = memory.redundant_traffic(case(now=now))
    assert found is not None
    assert (found.evidence[0].before, found.evidence[0].after) == (5, 61)
    assert found.without.global_sectors == pytest.approx(20)
    most = COPY.replace(global_bytes=640.0 * memory.TRAFFIC_GROWTH * BELOW)
    assert memory.redundant_traffic(case(now=most)) is None


def test_redundant_traffic_tells_of_shared_memory_that_is_no_longer_used() -> None:
    now = COPY.replace(global_bytes=1280.0)
    found = memory.redundant_traffic(case(TILE, now))
    assert found is not None
    assert "shared memory accesses 4 -> 0" in str(found.evidence[-1])


def test_lost_vectorisation() -> None:
    wide = COPY.replace(global_width=16.0, global_requests=1.25)
    found = memory.lost_vectorisation(case(wide, COPY))
    assert found is not None
    assert str(found.evidence[0]) == "bytes per global memory access and lane 16 -> 4"
    assert memory.lost_vectorisation(case(COPY.replace(global_width=4.0 * memory.WIDTH_LOSS * BELOW), COPY)) is None
    shared = memory.lost_vectorisation(case(TILE.replace(shared_width=16.0), TILE))
    assert shared is not None
    assert "shared" in shared.evidence[0].what
    both = memory.lost_vectorisation(case(TILE.replace(shared_width=16.0, global_width=16.0), TILE))
    assert both is not None
    assert [one.what.split()[2] for one in both.evidence[::2]] == ["global", "shared"]  # the more accesses, the earlier
    assert both.without.issued == COPY.issued - 3.75 - 3  # as many global and shared requests less


def test_lost_vectorisation_answers_for_addresses_and_loops_but_not_for_integers_that_are_the_work() -> None:
    wide = COPY.replace(global_width=16.0, global_requests=1.25, classes={"integer": 100.0})
    copy = COPY.replace(issued=45.0, classes={"global_load": 4.0, "global_store": 1.0, "integer": 40.0})
    found = memory.lost_vectorisation(case(wide.replace(issued=10.0, classes={"integer": 8.75}), copy))
    assert found is not None
    assert found.without.classes["integer"] == pytest.approx(10)  # as many for each of the wide ones
    aligned = copy.replace(issued=4005.0, classes={**copy.classes, "integer": 4000.0})
    found = memory.lost_vectorisation(case(wide, aligned))
    assert found is not None
    assert found.without.classes["integer"] == pytest.approx(4000 - 3.75 * memory.MOST_OVERHEAD)


def test_cache_hit_loss() -> None:
    was = COPY.replace(dram_bytes=1000.0)
    found = memory.cache_hit_loss(case(was, COPY.replace(dram_bytes=2000.0), counted=True))
    assert found is not None
    assert found.without.dram_bytes == 1000
    most = COPY.replace(dram_bytes=1000.0 * memory.HIT_LOSS * BELOW)
    assert memory.cache_hit_loss(case(was, most, counted=True)) is None
    assert memory.cache_hit_loss(case()) is None  # the machine code does not tell


def test_lost_tensor_cores() -> None:
    was = COPY.replace(classes={"tensor": 32.0, "fp32": 0.0})
    now = COPY.replace(classes={"fp32": 32768.0})
    assert compute.lost_tensor_cores(case(was, now)) is not None
    assert compute.lost_tensor_cores(case(was, was)) is None
    assert compute.lost_tensor_cores(case(was, COPY.replace(classes={}))) is None  # less of everything
    slightly = COPY.replace(classes={"tensor": 32.0 / compute.TENSOR_LOSS / BELOW, "fp32": 9.0})
    assert compute.lost_tensor_cores(case(was, slightly)) is None


def test_double_precision() -> None:
    now = COPY.replace(classes={**COPY.classes, "fp64": 20.0, "fp32": 0.0, "conversion": 4.0}, issued=104.0)
    found = compute.double_precision(case(now=now))
    assert found is not None
    assert found.without == COPY  # where there was none, conversions and all go with it
    was = COPY.replace(classes={**COPY.classes, "fp64": 20.0})
    most = COPY.replace(classes={**COPY.classes, "fp64": 20.0 * compute.FP64_GROWTH})
    assert compute.double_precision(case(was, most)) is None


def test_division() -> None:
    found = compute.division(case(now=COPY.replace(divisions=2.0, issued=140.0)))
    assert found is not None
    assert found.without.issued == pytest.approx(140 - 2 * compute.DIVISION_INSTRUCTIONS)
    was = COPY.replace(divisions=2.0)
    assert compute.division(case(was, COPY.replace(divisions=2.0 * compute.DIVISION_GROWTH * BELOW))) is None


def test_divergence() -> None:
    found = compute.divergence(case(now=COPY.replace(lanes=16.0, issued=200.0)))
    assert found is not None
    assert found.without.issued == 100
    assert compute.divergence(case(now=COPY.replace(lanes=32.0 / compute.LANE_LOSS + 0.01))) is None


def test_divergence_takes_the_waits_of_both_sides_of_a_branch_with_it() -> None:
    was, now = COPY.replace(load_lanes=32.0), COPY.replace(load_lanes=16.0, lanes=16.0)
    found = compute.divergence(case(was, now))
    assert found is not None
    alone = compute.divergence(case(now=now))
    assert alone is not None
    assert found.without.alone is not None
    assert alone.without.alone is not None
    assert alone.without.alone - found.without.alone == pytest.approx(350)


def test_divergence_is_not_named_where_the_sides_of_branches_became_longer() -> None:
    was = COPY.replace(lanes=31.0, split_branches=1000.0)
    longer = COPY.replace(lanes=23.0, split_branches=1000.0, issued=400.0)
    assert compute.divergence(case(was, longer)) is None
    assert compute.instruction_growth(case(was, longer)) is not None
    assert compute.divergence(case(was, longer.replace(split_branches=1100.0))) is not None


def test_instruction_growth() -> None:
    now = COPY.replace(issued=200.0, classes={**COPY.classes, "integer": 130.0})
    found = compute.instruction_growth(case(now=now))
    assert found is not None
    assert [str(one) for one in found.evidence] == [
        "instructions 100 -> 200 per warp",
        "integer instructions 30 -> 130 per warp",
    ]
    assert found.without.issued == pytest.approx(100)
    assert compute.instruction_growth(case(now=COPY.replace(issued=100.0 * compute.INSTRUCTION_GROWTH * BELOW))) is None


def test_instruction_growth_leaves_alone_what_others_account_for() -> None:
    spilled = COPY.replace(issued=200.0, classes={**COPY.classes, "local_load": 50.0, "local_store": 50.0})
    assert compute.instruction_growth(case(now=spilled)) is None
    split = COPY.replace(issued=200.0, lanes=16.0)
    assert compute.instruction_growth(case(now=split)) is None


def test_launch_configuration() -> None:
    before, after = side(record("a", block=64)), side(record("a", block=32, warps=32, limiter="blocks"))
    now = COPY.replace(warps=8.0, limit=8.0)
    found = waiting.launch_configuration(case(now=now, before=before, after=after))
    assert found is not None
    assert [str(one) for one in found.evidence] == [
        "block 64x1x1 -> 32x1x1",
        "occupancy 100 -> 50 % (limited by blocks)",
    ]
    assert waiting.launch_configuration(case(before=before, after=after)) is None  # as many warps as before
    assert waiting.launch_configuration(case(now=now, before=before, after=before)) is None
    hungry = side(record("a", block=32, warps=32, registers=64))
    assert waiting.launch_configuration(case(now=now, before=before, after=hungry)) is None


def test_occupancy_lost() -> None:
    after = side(record("b", registers=168, warps=12, limiter="registers"))
    now = COPY.replace(warps=3.0, limit=3.0)
    found = waiting.occupancy_lost(case(now=now, after=after))
    assert found is not None
    assert str(found.evidence[0]) == "occupancy 100 -> 18.8 % (limited by registers)"
    assert found.without.warps == 16
    slightly = COPY.replace(warps=16.0 / waiting.OCCUPANCY_LOSS / BELOW, limit=16.0 / waiting.OCCUPANCY_LOSS / BELOW)
    assert waiting.occupancy_lost(case(now=slightly)) is None


def _with_barriers(each: float, code: str = "a") -> Side:
    return side(record(code), estimate=dry({"barrier": each}))


def test_barrier_stalls() -> None:
    was = COPY.replace(classes={**COPY.classes, "barrier": 4.0}, waits={**COPY.waits, "barrier": 120.0})
    now = COPY.replace(classes={**COPY.classes, "barrier": 9.0}, waits={**COPY.waits, "barrier": 270.0})
    found = waiting.barrier_stalls(case(was, now, before=_with_barriers(4), after=_with_barriers(9, "b")))
    assert found is not None
    assert found.without.alone == 850
    assert str(found.evidence[0]) == "barriers and fences 4 -> 9 per warp"  # the class of instructions has both
    assert waiting.barrier_stalls(case(was, was, before=_with_barriers(4), after=_with_barriers(9))) is None
    assert (
        waiting.barrier_stalls(case(was, now, before=_with_barriers(4), after=_with_barriers(4))) is None
    )  # more warps
    most = COPY.replace(classes={"barrier": 4.0 * waiting.BARRIER_GROWTH * BELOW})
    assert waiting.barrier_stalls(case(was, most, before=_with_barriers(4), after=_with_barriers(9))) is None


def test_barrier_stalls_of_a_tree_go_with_its_steps() -> None:
    was = TILE.replace(classes={"barrier": 4.0})
    now = TILE.replace(classes={"barrier": 9.0}, shared_requests=9.0, shared_turns=9.0, shared_ideal=9.0, issued=150.0)
    found = waiting.barrier_stalls(case(was, now, before=_with_barriers(4), after=_with_barriers(9, "b")))
    assert found is not None
    assert (found.without.issued, found.without.shared_turns) == (100, 4)


def test_exposed_latency() -> None:
    now = COPY.replace(waits={"global_load": 2400.0, "fp32": 60.0}, alone=2700.0)
    found = waiting.exposed_latency(case(now=now))
    assert found is not None
    assert str(found.evidence[0]) == "cycles that a warp waits for each global load 175 -> 600"
    assert found.without.alone == pytest.approx(1000)
    most = COPY.replace(waits={name: cycles * waiting.WAIT_GROWTH * BELOW for name, cycles in COPY.waits.items()})
    assert waiting.exposed_latency(case(now=most)) is None
    as_long_for_more = COPY.replace(
        waits={"global_load": 1400.0, "fp32": 60.0}, classes={**COPY.classes, "global_load": 8.0}
    )
    assert waiting.exposed_latency(case(now=as_long_for_more)) is None


def test_exposed_latency_is_not_that_of_the_sides_of_a_branch() -> None:
    waits = {"global_load": 2400.0, "fp32": 60.0}
    was, now = COPY.replace(load_lanes=32.0), COPY.replace(waits=waits, alone=2700.0, load_lanes=20.0)
    assert waiting.exposed_latency(case(was, now.replace(lanes=25.0))) is None
    whole_warps = now.replace(lanes=32.0 / waiting.SECTOR_GROWTH / BELOW)  # nothing else would name the waits
    assert waiting.exposed_latency(case(was, whole_warps)) is not None


def test_exposed_latency_by_fewer_warps_than_there_could_be() -> None:
    found = waiting.exposed_latency(case(now=COPY.replace(warps=2.0)))
    assert found is not None
    assert str(found.evidence[0]) == "resident warps per scheduler 16 -> 2"
    assert found.without.warps == 16
    most = COPY.replace(warps=16.0 / waiting.WARP_LOSS / BELOW)
    assert waiting.exposed_latency(case(now=most)) is None
