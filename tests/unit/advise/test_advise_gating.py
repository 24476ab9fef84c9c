"""What explains a figure that gates comes first, and is named whatever it costs."""

from __future__ import annotations

import pytest
from advise_samples import COPY, case, dry, load, record, side

from pytest_gpuperf.advise import compute_rules as compute
from pytest_gpuperf.advise import memory_rules as memory
from pytest_gpuperf.advise import waiting_rules as waiting
from pytest_gpuperf.advise.advisor import LEAST_GAIN, advise

STORE = load(op="global_store", times=1)
QUIET = {"fp32": 2000.0, "global_load": 4.0, "global_store": 1.0}


def test_the_cause_of_a_stack_comes_before_a_dearer_one_of_nothing_that_gates() -> None:
    before = side(record("a"), estimate=dry(QUIET, load(), STORE))
    executed = {**QUIET, "local_load": 1.0}
    after = side(record("b", stack_bytes=16), estimate=dry(executed, load(sectors=32.0), STORE))
    first, second, *_ = advise(before, after)
    assert (first.cause, first.gates) == ("stack from run-time indexing", True)
    assert (second.cause, second.gates) == ("uncoalesced access", False)
    assert first.gain < LEAST_GAIN < second.gain


def test_occupancy_that_costs_nothing_is_named_behind_what_does() -> None:
    """Thousands of instructions between two loads hide their latency with half of the warps as well."""
    executed = {"fp32": 50000.0, "global_load": 4.0, "global_store": 1.0}
    before = side(record("a"), estimate=dry(executed, load(), STORE))
    more = {**executed, "integer": 30000.0}
    after = side(record("b", warps=32, registers=64, limiter="registers"), estimate=dry(more, load(), STORE))
    found = advise(before, after)
    assert [(one.cause, one.gates) for one in found] == [("instruction growth", False), ("occupancy lost", True)]
    assert found[1].gain < LEAST_GAIN


def test_only_double_precision_that_is_new_gates() -> None:
    some, more = (COPY.replace(classes={**COPY.classes, "fp64": count}) for count in (1.0, 50.0))
    new, grown = compute.double_precision(case(COPY, more)), compute.double_precision(case(some, more))
    assert new is not None
    assert grown is not None
    assert (new.gates, grown.gates) == (True, False)


def test_only_tensor_cores_that_are_not_used_any_more_gate() -> None:
    many, few = (COPY.replace(classes={**COPY.classes, "tensor": count}) for count in (50.0, 5.0))
    few = few.replace(classes={**few.classes, "fp32": 900.0})
    none = few.replace(classes={**few.classes, "tensor": 0.0})
    gone, fewer = compute.lost_tensor_cores(case(many, none)), compute.lost_tensor_cores(case(many, few))
    assert gone is not None
    assert fewer is not None
    assert (gone.gates, fewer.gates) == (True, False)


@pytest.mark.parametrize(
    ("figures", "gates"),
    [({"warps": 32}, True), ({"warps": 64}, False)],
)
def test_a_launch_gates_where_it_costs_occupancy(figures: dict[str, int], gates: bool) -> None:
    before, after = side(record("a", block=256)), side(record("a", block=64, **figures))
    limit = figures["warps"] / 4
    now = COPY.replace(warps=limit, limit=limit, global_sectors=40.0)
    found = waiting.launch_configuration(case(now=now, before=before, after=after))
    assert found is not None
    assert found.gates is gates


def test_spills_and_lost_occupancy_gate() -> None:
    after = side(record("b", spill_store_bytes=64, spill_load_bytes=64, stack_bytes=64, warps=32))
    spills = memory.register_spilling(case(now=COPY.replace(local_requests=32.0), after=after))
    fewer = waiting.occupancy_lost(case(now=COPY.replace(warps=8.0, limit=8.0), after=after))
    assert spills is not None
    assert fewer is not None
    assert spills.gates
    assert fewer.gates
