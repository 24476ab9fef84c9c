"""The recording rules at their edges: which sessions stay, whose counters, and what is refused with which words."""

from __future__ import annotations

import msgspec
import pytest
from baseline_samples import H200, make_host_time, make_key, make_round, make_session, make_time

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.merging import KEPT_SESSIONS, Update, merged
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


def test_the_latest_sessions_by_date_stay() -> None:
    sessions = [make_session(number, id=f"{9 - number}") for number in range(1, KEPT_SESSIONS + 3)]
    file = NONE
    for session in sessions:
        file = recorded(file, make_time(session))
    assert [entry.session for entry in file[NAME].rounds[::2]] == [session.id for session in sessions[2:]]


def test_rounds_are_in_the_order_of_their_sessions() -> None:
    early, late = make_session(1), make_session(2)
    taken = [(late, 3e4), (early, 1e4), (late, 4e4), (early, 2e4)]
    record = make_time(
        late, rounds=[make_round(session, midmean) for session, midmean in taken], sessions=(late, early)
    )
    rounds = recorded(NONE, record)[NAME].rounds
    assert [(entry.session, entry.midmean) for entry in rounds] == [
        (early.id, 1e4), (early.id, 2e4), (late.id, 3e4), (late.id, 4e4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sessions"),
    [({}, 2), ({"timer": "graph"}, 1), ({"cache": "warm"}, 1), ({"identity": OTHER}, 1)],
    ids=["alike", "timer", "cache", "code"],
)
def test_rounds_of_equal_work_are_joined(changes: dict[str, object], sessions: int) -> None:
    first, second = make_session(1), make_session(2)
    old = recorded(NONE, make_time(first, counters={"dram": 5.0, "inst": 6.0}, counter_ranges={"dram": (4.0, 6.0)}))
    new = recorded(old, make_time(second, counters={"inst": 7.0}, **changes))[NAME]
    assert len({entry.session for entry in new.rounds}) == sessions
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


def test_a_round_of_a_session_that_the_update_lacks_is_refused() -> None:
    first, second = make_session(1), make_session(2)
    with pytest.raises(BaselineError, match="transpose_padded: the update lacks the session of a round"):
        recorded(NONE, make_time(first, sessions=(second,)))
