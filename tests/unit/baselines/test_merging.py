"""The recording rules at their edges: which sessions stay, whose counters, and what is refused with which words."""

from __future__ import annotations

import math

import msgspec
import pytest
from baseline_samples import H200, make_host_time, make_key, make_round, make_session, make_time

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.merging import KEPT_SESSIONS, Update, merged, significant
from pytest_gpuperf.baselines.records import Records
from pytest_gpuperf.model.time_record import Beside, Identity, Round, TimeRecord

NAME = make_key(), ""
NONE: Records = {}
OTHER = Identity(code="d0" * 32, launch="grid=(1, 1, 1)")
BESIDE = Beside(memory_bytes=4096, host=make_host_time())


def after(old: Records, update: Update) -> Records:
    ((_, part),) = update.by_file().items()
    return merged(old, part)


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
    old = recorded(NONE, make_time(first, counters={"dram": 5.0}))
    new = recorded(old, make_time(second, **changes))[NAME]
    assert len({entry.session for entry in new.rounds}) == sessions
    assert new.counters == ({"dram": 5.0} if set(changes) <= {"timer"} else {})


def test_new_counters_join_those_on_record() -> None:
    first, second = make_session(1), make_session(2)
    old = recorded(NONE, make_time(first, counters={"dram": 5.0, "inst": 6.0}))
    new = recorded(old, make_time(second, counters={"inst": 7.0}))
    assert new[NAME].counters == {"dram": 5.0, "inst": 7.0}


def test_a_recording_without_figures_keeps_those_on_record() -> None:
    session = make_session()
    old = recorded(NONE, make_time(session, beside=BESIDE))
    assert recorded(old, make_time(session, identity=OTHER))[NAME].beside == old[NAME].beside


def test_figures_take_the_place_of_their_kind_alone() -> None:
    session = make_session()
    old = recorded(NONE, make_time(session, beside=BESIDE, counters={"dram": 5.0}))
    given = msgspec.structs.replace(
        old[NAME], counters={"dram": 6.0}, beside=Beside(memory_bytes=8192, accuracy=1.23456789)
    )
    new = after(old, Update(figures={(H200, make_key()): given}))[NAME]
    assert (new.counters, new.rounds) == ({"dram": 6.0}, old[NAME].rounds)
    assert new.beside is not None
    assert (new.beside.memory_bytes, new.beside.accuracy) == (8192, 1.23457)
    assert new.beside.host is not None
    assert (new.beside.host.ratios, new.beside.host.time_ns) == ((1.2346, 1.25, 1.24), 8123.0)


@pytest.mark.parametrize("known", [None, OTHER])
def test_figures_of_a_record_that_became_other_work_are_refused(known: Identity | None) -> None:
    """Another update may have written between the reading of a record and the writing of its counters."""
    session = make_session()
    old = NONE if known is None else recorded(NONE, make_time(session, identity=known))
    with pytest.raises(BaselineError, match="another update has recorded other work meanwhile"):
        after(old, Update(figures={(H200, make_key()): make_time(session)}))


def test_a_round_of_a_session_that_the_update_lacks_is_refused() -> None:
    first, second = make_session(1), make_session(2)
    with pytest.raises(BaselineError, match="transpose_padded: the update lacks the session of a round"):
        recorded(NONE, make_time(first, sessions=(second,)))


# --- rounding ------------------------------------------------------------------------------------


def test_every_figure_is_rounded_to_its_own_digits() -> None:
    session = make_session(tick_ns=32.123456, overhead_ns=1234.5678)
    raw = make_time(
        session, rounds=[make_round(session, 51234.5678)],
        counters={"ratio": 1.23456789123, "count": 12_345_678_901.0, "a.sum": 123456789.512},
        counter_ranges={"ratio": (0.111111111111, 1.55555555555)},
    )  # fmt: skip
    found = recorded(NONE, raw)[NAME]
    assert found.rounds == (Round(session=session.id, midmean=51234.6),)
    assert [(one.tick_ns, one.overhead_ns) for one in found.sessions] == [(32.12, 1235.0)]
    assert found.counters == {"ratio": 1.23457, "count": 12_345_678_901.0, "a.sum": 123456790.0}
    assert found.counter_ranges == {"ratio": (0.111111111, 1.55555556)}
    assert recorded(NONE, found)[NAME] == found


@pytest.mark.parametrize(
    ("value", "digits", "found"), [(1234.5, 2, 1200.0), (0.00098765, 3, 0.000988), (-1234.5, 4, -1234.0), (7.0, 1, 7.0)]
)
def test_significant_digits_are_counted_from_the_first(value: float, digits: int, found: float) -> None:
    assert significant(value, digits) == found


def test_a_time_that_is_not_a_number_stays_one_for_the_checks() -> None:
    assert math.isnan(significant(math.nan, 4))
