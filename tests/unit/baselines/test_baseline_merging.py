"""The recording rules at their edges: which sessions stay, whose counters, and what is refused with which words."""

from __future__ import annotations

import msgspec
import pytest
from baseline_samples import (
    H200,
    NVRTC,
    make_host_time,
    make_key,
    make_round,
    make_session,
    make_static,
    make_time,
)

from pytest_gpuperf.baselines.baseline_errors import UnwritableEvidenceError
from pytest_gpuperf.baselines.file_types import TimeFile
from pytest_gpuperf.baselines.merging import KEPT_SESSIONS, merge_static, merge_time
from pytest_gpuperf.judge.counters import Counts
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import Identity, Key, Session, TimeRecord


def merged(old: TimeFile | None, record: TimeRecord, *sessions: Session) -> TimeFile:
    return merge_time(old, H200, [(make_key(), record)], sessions)


def padded(file: TimeFile) -> TimeRecord:
    return file.tests["test_transpose"]["padded"]


def test_the_sessions_that_stay_are_the_latest_by_date_and_not_by_name() -> None:
    sessions = [make_session(number, id=f"{9 - number}") for number in range(1, KEPT_SESSIONS + 3)]
    file = None
    for session in sessions:
        file = merged(file, make_time(session), session)
    assert file is not None
    assert list(file.sessions) == sessions[2:]
    assert [entry.session for entry in padded(file).rounds[::2]] == [session.id for session in sessions[2:]]


def test_rounds_of_one_record_are_put_in_the_order_of_their_sessions() -> None:
    early, late = make_session(1), make_session(2)
    rounds = [
        make_round(late, midmean=3e4),
        make_round(early, midmean=1e4),
        make_round(late, midmean=4e4),
        make_round(early, midmean=2e4),
    ]
    file = merged(None, make_time(late, rounds=rounds), late, early)
    assert [(entry.session, entry.midmean) for entry in padded(file).rounds] == [
        (early.id, 1e4), (early.id, 2e4), (late.id, 3e4), (late.id, 4e4),
    ]  # fmt: skip


def test_equal_code_of_two_sources_is_on_record_alike_in_whatever_order_its_tests_ended() -> None:
    sources = {test: msgspec.structs.replace(make_static(), source_hash=test[-1] * 64) for test in ("test_a", "test_b")}
    new = [(NVRTC, make_key(test), record) for test, record in sources.items()]
    file = merge_static(None, "sm_90", new)
    assert {record.source_hash for *_, record in file.records()} == {"b" * 64}
    assert merge_static(None, "sm_90", reversed(new)) == file


def test_a_session_that_is_given_again_replaces_what_was_known_of_it() -> None:
    first, again = make_session(1), make_session(1, driver="590.1")
    file = merged(merged(None, make_time(first), first), make_time(again), again)
    assert file.sessions == (again,)


def test_new_counters_join_those_on_record() -> None:
    first, second = make_session(1), make_session(2)
    old, new = make_time(first, counters={"dram": 5.0, "inst": 6.0}), make_time(second, counters={"inst": 7.0})
    assert padded(merged(merged(None, old, first), new, second)).counters == {"dram": 5.0, "inst": 7.0}


def test_other_tests_and_workloads_stay() -> None:
    session = make_session()
    keys = [make_key("test_a", "one"), make_key("test_a", "two"), make_key("test_b", "one")]
    old = merge_time(None, H200, [(key, make_time(session)) for key in keys], [session])
    new = merge_time(old, H200, [(keys[1], make_time(session, bytes=7))], [session])
    assert new.tests["test_a"]["two"].bytes == 7
    assert new.tests["test_a"]["one"] == old.tests["test_a"]["one"]
    assert new.tests["test_b"] == old.tests["test_b"]
    assert old.tests["test_a"]["two"].bytes is None


def test_a_round_of_a_session_that_only_the_old_file_has_is_refused() -> None:
    first, second = make_session(1), make_session(2)
    old = merged(None, make_time(first), first)
    with pytest.raises(UnwritableEvidenceError) as caught:
        merged(old, make_time(first), second)
    assert str(caught.value) == (f"{make_key()}: a round names session '{first.id}', which the update does not have")


@pytest.mark.parametrize("key", [make_key(workload="naive"), make_key("test_reduce")], ids=["workload", "test"])
def test_counters_of_a_workload_without_a_time_are_refused(key: Key) -> None:
    session = make_session()
    old = merged(None, make_time(session), session)
    with pytest.raises(UnwritableEvidenceError) as caught:
        merge_time(old, H200, [], [], [(key, Counts({"dram": 6.0}))])
    assert str(caught.value) == f"{key}: counters belong to a time on record, and there is none"


def test_counters_of_a_record_that_became_other_work_meanwhile_are_refused() -> None:
    """Another update may have written between the reading of a record and the writing of what belongs to it."""
    session, other = make_session(), Identity(code="d0" * 32, launch="grid=(1024, 1, 1) block=(32, 32, 1) shared=0")
    theirs = merged(None, make_time(session, identity=other), session)
    counters = [(make_key(), Counts({"dram": 6.0}))]
    with pytest.raises(UnwritableEvidenceError, match="another update has recorded other work meanwhile"):
        merge_time(theirs, H200, [], [], counters, stays=[(make_key(), make_time(session).identity)])
    assert merge_time(theirs, H200, [], [], counters, stays=[(make_key(), other)]) != theirs


def test_records_of_equal_code_have_the_source_of_the_latest() -> None:
    one, other = make_key("test_a"), make_key("test_b")
    file = merge_static(None, "sm_90", [(NVRTC, one, make_static()), (NVRTC, other, make_static())])
    edited = msgspec.structs.replace(make_static(), source_hash="51" * 32)
    records = merge_static(file, "sm_90", [(NVRTC, other, edited)]).toolchains[NVRTC]
    assert {of["padded"].source_hash for of in records.values()} == {"51" * 32}
    assert {of["padded"].source_hash for of in file.toolchains[NVRTC].values()} == {"50" * 32}


BESIDE = Beside(memory_bytes=4096, host=make_host_time())


def test_a_recording_without_figures_beside_its_time_keeps_those_on_record() -> None:
    session = make_session()
    old = merged(None, make_time(session, beside=BESIDE), session)
    other_code = make_time(session, identity=Identity(code="d0" * 32, launch="grid=(1, 1, 1)"))
    assert padded(merged(old, other_code, session)).beside == padded(old).beside is not None


def test_a_figure_beside_the_time_takes_the_place_of_its_kind_alone() -> None:
    session = make_session()
    old = merged(None, make_time(session, beside=BESIDE), session)
    new = merge_time(old, H200, [], [], beside=[(make_key(), Beside(memory_bytes=8192, accuracy=1.23456789))])
    assert padded(new).beside == Beside(memory_bytes=8192, accuracy=1.23457, host=padded(old).beside.host)  # type: ignore[union-attr]
    assert padded(new).rounds == padded(old).rounds


def test_host_times_are_stored_to_the_digits_that_mean_something() -> None:
    session = make_session()
    host = padded(merged(None, make_time(session, beside=BESIDE), session)).beside.host  # type: ignore[union-attr]
    assert host is not None
    assert (host.ratios, host.time_ns) == ((1.2346, 1.25, 1.24), 8123.0)


def test_figures_beside_a_time_that_is_not_on_record_are_refused() -> None:
    with pytest.raises(UnwritableEvidenceError, match="figures beside a time belong to one on record"):
        merge_time(None, H200, [], [], beside=[(make_key(), BESIDE)])
