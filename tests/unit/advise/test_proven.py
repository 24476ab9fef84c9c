"""Causes that the machine code proves."""

from __future__ import annotations

import msgspec
import pytest
from advise_samples import dry, load, record, side

from pytest_gpuperf.advise.advisor import proven_causes
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.model.warp_estimate import Access


def tile(turns: float) -> tuple[Access, Access]:
    """A store to shared memory and the load behind it, with so many passes each."""
    accesses = load(op="shared_load", times=8.0), load(op="shared_store", times=8.0)
    store, read = (msgspec.structs.replace(one, turns=turns, sectors=None) for one in accesses)
    return store, read


def launched(code: str, turns: float, integers: float) -> Side:
    executed = {"integer": integers, "global_load": 4.0, "global_store": 1.0, "shared_load": 8.0, "shared_store": 8.0}
    accesses = load(), *tile(turns), load(op="global_store", times=1.0)
    return side(record(code), estimate=dry(executed, *accesses, launched=True))


@pytest.mark.parametrize(
    ("turns", "integers", "found"),
    [
        (8.0, 200.0, True),
        (16.0, 100.0, True),
        (1.0, 100.0, False),
    ],
)
def test_conflicts_of_known_accesses_are_a_cause(turns: float, integers: float, found: bool) -> None:
    before, after = launched("a", 1.0, 200.0), launched("b", turns, integers)
    assert [one.what for one in proven_causes(before, after)] == ["passes per shared-memory access"] * found
