"""One rule at a time: it speaks on its evidence and is silent just below its threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from advise_samples import COPY, case, dry, load, record, side

from pytest_gpuperf.advise import compute_rules as compute
from pytest_gpuperf.advise import memory_rules as memory
from pytest_gpuperf.advise import waiting_rules as waiting
from pytest_gpuperf.advise.advisor import LEAST_GAIN, RULES, advise
from pytest_gpuperf.advise.comparison import ANY, Case, Finding, Side, Usage

BELOW = 0.999
"""Just short of a threshold."""
Rule = Callable[[Case], Finding | None]
Row = tuple[Rule, Case, str, bool, dict[str, Any]]
"""A rule, its case, the figure shown first, whether it gates, and quantities without the cause."""


def copy(**changes: Any) -> Usage:
    return COPY.replace(**changes)


def classes(**counts: float) -> Usage:
    return copy(classes={**COPY.classes, **counts})


TILE = copy(shared_requests=4.0, shared_wavefronts=4.0, shared_ideal=4.0, shared_width=4.0)
LOCAL = copy(local_requests=32.0, issued=132.0)
SPILLED = side(record("b", spill_store_bytes=64, spill_load_bytes=64, stack_bytes=64))
UNKNOWN = {"spill_store_bytes": None, "spill_load_bytes": None}
UNCOUNTED = {"before": side(record("a", **UNKNOWN)), "after": side(record("b", stack_bytes=64, **UNKNOWN))}
STACK = {"after": side(record("b", stack_bytes=16))}
WIDE = copy(global_width=16.0, global_requests=1.25)
APART = copy(global_sectors=80.0)
"""Its lanes lie as far apart, and take a quarter at once."""
TENSOR = copy(classes={"tensor": 32.0, "fp32": 0.0})
SPLIT = copy(lanes=31.0, split_branches=1000.0)
LONGER = copy(lanes=23.0, split_branches=1000.0, issued=400.0)
BLOCKS = {"before": side(record("a", block=64)), "after": side(record("a", block=32, warps=32, limiter="blocks"))}
FEWER = {"after": side(record("b", registers=168, warps=12, limiter="registers"))}
BOUND = waiting.OCCUPANCY_LOSS * BELOW


def barriers(before: float, after: float) -> dict[str, Side]:
    return {name: side(record(code), estimate=dry({"barrier": each}))
            for name, code, each in (("before", "a", before), ("after", "b", after))}  # fmt: skip


FOUR = copy(classes={**COPY.classes, "barrier": 4.0}, waits={**COPY.waits, "barrier": 120.0})
NINE = copy(classes={**COPY.classes, "barrier": 9.0}, waits={**COPY.waits, "barrier": 270.0})
WAITS = {"global_load": 2400.0, "fp32": 60.0}
ONE_SIDE = copy(waits=WAITS, single_warp_cycles=2700.0, load_lanes=20.0)

SPEAKS: list[Row] = [
    (memory.register_spilling, case(now=LOCAL, after=SPILLED), "spilled bytes per thread 0 -> 128", True,
     {"local_requests": 0, "issued": 100}),
    (memory.register_spilling, case(now=LOCAL, **UNCOUNTED), "stack bytes per thread 0 -> 64", True, {}),
    (memory.stack, case(now=LOCAL, **STACK), "stack bytes per thread 0 -> 16", True, {"local_requests": 0}),
    (memory.uncoalesced, case(now=copy(global_sectors=160.0)), "sectors per global request 4 -> 32", False,
     {"global_sectors": 20}),
    (memory.bank_conflicts, case(TILE, TILE.replace(shared_wavefronts=128.0)),
     "wavefronts per shared-memory access 1 -> 32", False, {"shared_wavefronts": 4}),
    (memory.redundant_traffic, case(now=copy(global_requests=61.0, global_bytes=7808.0, global_sectors=244.0)),
     "global memory accesses 5 -> 61 per warp", False, {"global_sectors": 20}),
    (memory.lost_vectorisation, case(WIDE, COPY), "bytes per global memory access and lane 16 -> 4", False, {}),
    (memory.lost_vectorisation, case(WIDE, APART), "bytes per global memory access and lane 16 -> 4", False,
     {"global_sectors": 20}),
    (memory.lost_vectorisation, case(TILE.replace(shared_width=16.0), TILE),
     "bytes per shared memory access and lane 16 -> 4", False, {}),
    (memory.atomics, case(copy(atomics=1.0, atomic_turns=1.0), copy(atomics=1.0, atomic_turns=32.0)),
     "lanes that add to one address 1 -> 32", False, {"atomic_turns": 1}),
    (memory.atomics, case(copy(), copy(atomics=8.0, atomic_turns=8.0, scattered_atomics=8.0, issued=120.0)),
     "global atomics 0 -> 8 per warp", False, {"scattered_atomics": 0, "issued": 112}),
    (memory.cache_hit_loss, case(copy(dram_bytes=1000.0), copy(dram_bytes=2000.0), counted=True),
     "DRAM bytes per sector asked for 50 -> 100 bytes", False, {"dram_bytes": 1000}),
    (memory.cache_hit_loss, case(copy(dram_bytes=1e3),
                                 copy(dram_bytes=2e3, waits=WAITS, single_warp_cycles=2700.0), counted=True),
     "DRAM bytes per sector asked for 50 -> 100 bytes", False, {"single_warp_cycles": 1000}),
    (compute.lost_tensor_cores, case(TENSOR, copy(classes={"fp32": 32768.0})), "tensor instructions 32 -> 0 per warp",
     True, {}),
    (compute.double_precision, case(now=classes(fp64=20.0).replace(issued=104.0)), "fp64 instructions 0 -> 20 per warp",
     True, {"issued": COPY.issued}),
    (compute.division, case(now=copy(divisions=2.0, issued=140.0, waits=WAITS, single_warp_cycles=2740.0)),
     "divisions and roots with a slow path 0 -> 2 per warp", False,
     {"issued": 140 - 2 * compute.DIVISION_INSTRUCTIONS, "single_warp_cycles": 1016}),
    (compute.divergence, case(now=copy(lanes=16.0, issued=200.0)), "active lanes per instruction 32 -> 16 of 32", False,
     {"issued": 100}),
    (compute.divergence, case(SPLIT, LONGER.replace(split_branches=1100.0)),
     "active lanes per instruction 31 -> 23 of 32", False, {}),
    (compute.instruction_growth, case(now=classes(integer=130.0).replace(issued=200.0)),
     "instructions 100 -> 200 per warp", False, {"issued": 100}),
    (compute.instruction_growth, case(SPLIT, LONGER), "instructions 100 -> 400 per warp", False, {}),
    (waiting.launch_configuration, case(now=copy(warps=8.0, limit=8.0), **BLOCKS), "block 64x1x1 -> 32x1x1", True, {}),
    (waiting.occupancy_lost, case(now=copy(warps=3.0, limit=3.0), **FEWER),
     "occupancy 100 -> 18.8 % (limited by registers)", True, {"warps": 16}),
    (waiting.barrier_stalls, case(FOUR, NINE, **barriers(4, 9)), "barriers and fences 4 -> 9 per warp", False,
     {"single_warp_cycles": 850}),
    (waiting.exposed_latency, case(now=copy(waits=WAITS, single_warp_cycles=2700.0)),
     "cycles that a warp waits for each global load 175 -> 600", False, {"single_warp_cycles": 1000}),
    (waiting.exposed_latency, case(copy(waits={ANY: 700.0}), copy(waits={ANY: 1400.0}, single_warp_cycles=1700.0)),
     "cycles that a warp waits for each instruction 7 -> 14", False, {"single_warp_cycles": 1000}),
    (waiting.exposed_latency, case(now=copy(warps=2.0)), "resident warps per scheduler 16 -> 2", False, {"warps": 16}),
]  # fmt: skip
SILENT: list[tuple[Rule, Case]] = [
    (memory.register_spilling, case(**UNCOUNTED)),
    (memory.stack, case(now=LOCAL, **UNCOUNTED)),
    (memory.stack, case(**STACK)),  # a stack that nobody touches
    (memory.stack, case(now=LOCAL, after=side(record("b", stack_bytes=16, spill_store_bytes=16)))),
    (memory.uncoalesced, case(now=copy(global_sectors=20.0 * memory.SECTOR_GROWTH * BELOW))),
    (memory.uncoalesced, case(WIDE, APART)),
    (memory.bank_conflicts, case(TILE, TILE.replace(shared_wavefronts=4.0 * memory.CONFLICT_GROWTH * BELOW))),
    (memory.bank_conflicts, case(TILE, TILE.replace(shared_wavefronts=16.0, shared_ideal=16.0))),
    (memory.redundant_traffic, case(now=copy(global_bytes=640.0 * memory.TRAFFIC_GROWTH * BELOW))),
    (memory.lost_vectorisation, case(copy(global_width=4.0 * memory.WIDTH_LOSS * BELOW), COPY)),
    (memory.atomics, case(copy(global_requests=8.0), copy(atomics=3.0, atomic_turns=3.0))),  # in place of a load each
    (memory.atomics, case(copy(atomic_turns=4.0), copy(atomics=1.0, atomic_turns=4.0 * memory.TURN_GROWTH * BELOW))),
    (memory.cache_hit_loss, case(copy(dram_bytes=1e3), copy(dram_bytes=1e3 * memory.HIT_LOSS * BELOW), counted=True)),
    (compute.lost_tensor_cores, case(TENSOR, copy(classes={"tensor": 32 / compute.TENSOR_LOSS / BELOW, "fp32": 9.0}))),
    (compute.double_precision, case(classes(fp64=20.0), classes(fp64=20.0 * compute.FP64_GROWTH))),
    (compute.division, case(copy(divisions=2.0), copy(divisions=2.0 * compute.DIVISION_GROWTH * BELOW))),
    (compute.divergence, case(now=copy(lanes=32.0 / compute.LANE_LOSS + 0.01))),
    (compute.divergence, case(SPLIT, LONGER)),
    (compute.instruction_growth, case(now=copy(issued=100.0 * compute.INSTRUCTION_GROWTH * BELOW))),
    (compute.instruction_growth, case(now=classes(local_load=50.0, local_store=50.0).replace(issued=200.0))),
    (waiting.launch_configuration, case(now=copy(warps=8.0, limit=8.0), before=BLOCKS["before"],
                                        after=side(record("a", block=32, warps=32, registers=64)))),
    (waiting.occupancy_lost, case(now=copy(warps=16.0 / BOUND, limit=16.0 / BOUND))),
    (waiting.barrier_stalls, case(FOUR, NINE, **barriers(4, 4))),  # more warps
    (waiting.barrier_stalls, case(FOUR, copy(classes={"barrier": 4 * waiting.BARRIER_GROWTH * BELOW}),
                                  **barriers(4, 9))),
    (waiting.exposed_latency, case(now=copy(waits={name: cycles * waiting.WAIT_GROWTH * BELOW
                                                   for name, cycles in COPY.waits.items()}))),
    (waiting.exposed_latency, case(copy(load_lanes=32.0), ONE_SIDE.replace(lanes=25.0))),  # that of a branch's sides
    (waiting.exposed_latency, case(now=copy(warps=16.0 / waiting.WARP_LOSS / BELOW))),
    (waiting.exposed_latency, case(copy(waits={ANY: 700.0}), copy(waits={ANY: 1400.0}, issued=200.0))),
]  # fmt: skip


@pytest.mark.parametrize("row", SPEAKS, ids=lambda row: row[0].__name__)
def test_a_rule_speaks_on_its_evidence(row: Row) -> None:
    rule, of, evidence, gates, without = row
    found = rule(of)
    assert found is not None
    assert (str(found.evidence[0]), found.gates) == (evidence, gates)
    assert {name: getattr(found.without, name) for name in without} == pytest.approx(without)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_is_silent_below_its_threshold(rule: Rule) -> None:
    assert rule in [one for one, *_ in SPEAKS]
    for of in (case(), *(of for one, of in SILENT if one is rule)):
        assert rule(of) is None


def test_a_stack_that_is_written_alone_is_an_address_taken() -> None:
    for now, opcodes, cause in (
        (LOCAL, {"local_store": 1}, "address of a local variable"),
        (COPY, {"local_store": 1}, "address of a local variable"),  # by other warps than the one that was walked
        (LOCAL, {"local_store": 1, "local_load": 1}, "stack from run-time indexing"),
    ):
        found = memory.stack(case(now=now, after=side(record("b", stack_bytes=8, opcodes=opcodes))))
        assert found is not None
        assert found.cause == cause


# --- in which order ------------------------------------------------------------------------------

STORE = load(op="global_store", times=1)


def test_the_cause_of_a_stack_comes_before_a_dearer_one_of_nothing_that_gates() -> None:
    quiet = {"fp32": 2000.0, "global_load": 4.0, "global_store": 1.0}
    before = side(record("a"), estimate=dry(quiet, load(), STORE))
    after = side(record("b", stack_bytes=16), estimate=dry({**quiet, "local_load": 1.0}, load(sectors=32.0), STORE))
    first, second, *_ = advise(before, after)
    assert (first.cause, first.gates) == ("stack from run-time indexing", True)
    assert (second.cause, second.gates) == ("uncoalesced access", False)
    assert first.gain < LEAST_GAIN < second.gain
