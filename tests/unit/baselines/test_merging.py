"""The recording rules at their edges: which times stay, and whose counters and figures."""

from __future__ import annotations

import msgspec
import pytest
from baseline_samples import H200, make_host_time, make_key, make_session, make_time

from pytest_gpuperf.baselines.merging import Update, merged
from pytest_gpuperf.baselines.records import Records
from pytest_gpuperf.model.time_record import Beside, Identity, TimeRecord

NAME = make_key(), ""
NONE: Records = {}
OTHER = Identity(code="d0" * 32, launch="grid=(1, 1, 1)")
BESIDE = Beside(memory_bytes=4096, host=make_host_time())


def after(old: Records, update: Update) -> Records:
    ((_, part),) = update.by_file().items()
    return merged(old, *part)


def recorded(old: Records, record: TimeRecord) -> Records:
    return after(old, Update(time={(H200, make_key()): record}))


@pytest.mark.parametrize("changes", [{}, {"timer": "graph"}, {"cache": "warm"}, {"identity": OTHER}], ids=str)
def test_counters_of_equal_work_stay_and_times_are_replaced(changes: dict[str, object]) -> None:
    first, second = make_session(1), make_session(2)
    old = recorded(NONE, make_time(first, counters={"dram": 5.0, "inst": 6.0}, counter_ranges={"dram": (4.0, 6.0)}))
    new = recorded(old, make_time(second, counters={"inst": 7.0}, **changes))[NAME]
    assert ({entry.session for entry in new.rounds}, new.sessions) == ({second.id}, (second,))
    assert new.counters == ({"dram": 5.0, "inst": 7.0} if set(changes) <= {"timer"} else {"inst": 7.0})
    assert new.counter_ranges == ({"dram": (4.0, 6.0)} if set(changes) <= {"timer"} else {})


def test_figures_take_the_place_of_their_kind_alone() -> None:
    session = make_session()
    old = recorded(NONE, make_time(session, beside=BESIDE, counters={"dram": 5.0}))
    given = msgspec.structs.replace(old[NAME], counters={"dram": 6.0}, beside=Beside(memory_bytes=8192, accuracy=1.5))
    new = recorded(old, given)[NAME]
    assert (new.counters, new.rounds) == ({"dram": 6.0}, old[NAME].rounds)
    assert new.beside == msgspec.structs.replace(BESIDE, memory_bytes=8192, accuracy=1.5)
    assert recorded(old, make_time(session, identity=OTHER))[NAME].beside == old[NAME].beside
