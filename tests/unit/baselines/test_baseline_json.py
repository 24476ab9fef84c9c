"""The files themselves: round trip, stable bytes, rounding to the noise, and how sessions add up."""

from __future__ import annotations

import json
import lzma
import math
from pathlib import Path

import msgspec
import pytest
from baseline_samples import CUBIN, H200, NVRTC, make_key, make_round, make_session, make_static, make_time, time_update
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines.baseline_errors import NewerSchemaError, UnreadableBaselineError, UnwritableEvidenceError
from pytest_gpuperf.baselines.canonical import canonical_bytes
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.merging import KEPT_SESSIONS, Update, merge_static, merge_time
from pytest_gpuperf.baselines.parsing import decode
from pytest_gpuperf.baselines.rounding import round_time
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.judge.counters import Counts
from pytest_gpuperf.model.evidence import Identity, Session, StaticRecord, TimeRecord

PATH = Path("baselines/file.json")


def time_file(*records: tuple[str, TimeRecord], sessions: list[Session]) -> TimeFile:
    return merge_time(None, H200, [(make_key(workload=name), record) for name, record in records], sessions)


def only(file: TimeFile) -> TimeRecord:
    [workloads] = file.tests.values()
    [record] = workloads.values()
    return record


def recorded(*sessions: Session, old: TimeFile | None = None) -> TimeFile:
    """One workload, recorded once per session, one after the other."""
    for session in sessions:
        old = merge_time(old, H200, [(make_key(), make_time(session))], [session])
    assert old is not None
    return old


# --- round trip ----------------------------------------------------------------------------------

finite = st.floats(min_value=1e-2, max_value=1e12)
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cf"]), max_size=20)
counts = st.integers(0, 2**40)


@st.composite
def time_records(draw: st.DrawFn, session: Session) -> TimeRecord:
    rounds = []
    for _ in range(draw(st.integers(1, 3))):
        low, *quantiles, high = sorted(draw(st.lists(finite, min_size=7, max_size=7)))
        rounds.append(
            msgspec.structs.replace(
                make_round(session),
                midmean=draw(finite),
                quantiles=tuple(quantiles),
                minimum=low,
                maximum=high,
            )
        )
    counters = draw(st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), max_size=3))
    identity = Identity(code="c0" * 32, launch="grid=(1, 1, 1) block=(32, 1, 1) shared=0", config=draw(names))
    return make_time(
        session, rounds=rounds, counters=counters, bytes=draw(st.none() | counts), cubin="", identity=identity
    )


@given(st.dictionaries(names, time_records(make_session()), min_size=1, max_size=3))
def test_json_round_trip_of_times(records: dict[str, TimeRecord]) -> None:
    file = time_file(*records.items(), sessions=[make_session()])
    content = canonical_bytes(file)
    again = decode(content, PATH, H200)
    assert again == file
    assert canonical_bytes(again) == content


static_records = st.builds(make_static, counts, st.dictionaries(names, counts, max_size=3), config=names)


@given(st.dictionaries(names, static_records, min_size=1))
def test_json_round_trip_of_static_evidence(records: dict[str, StaticRecord]) -> None:
    file = merge_static(None, "sm_90", [(NVRTC, make_key(name, name), record) for name, record in records.items()])
    content = canonical_bytes(file)
    again = decode(content, PATH, "sm_90")
    assert again == file
    assert canonical_bytes(again) == content


def test_bytes_do_not_depend_on_the_order_of_recording() -> None:
    one, two = (NVRTC, make_key("test_a"), make_static()), (NVRTC, make_key("test_b", "w"), make_static(40))
    assert canonical_bytes(merge_static(None, "sm_90", [one, two])) == canonical_bytes(
        merge_static(merge_static(None, "sm_90", [two]), "sm_90", [one])
    )


def test_what_no_judge_reads_of_a_round_is_not_written() -> None:
    session = make_session()
    other = msgspec.structs.replace(make_round(session), samples=7, maximum=9e9)
    plain = time_file(("a", make_time(session, rounds=[make_round(session)])), sessions=[session])
    assert canonical_bytes(time_file(("a", make_time(session, rounds=[other])), sessions=[session])) == (
        canonical_bytes(plain)
    )


def test_a_file_is_laid_out_for_diffs() -> None:
    text = canonical_bytes(recorded(make_session(1), make_session(2))).decode()
    assert text.endswith("}\n")
    assert len([line for line in text.splitlines() if '"midmeans"' in line]) == 2
    assert len([line for line in text.splitlines() if '"uuid"' in line]) == 2
    static = canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static())])).decode().splitlines()
    wider = canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static(40))])).decode().splitlines()
    [(before, after)] = [(a, b) for a, b in zip(static, wider, strict=True) if a != b]
    assert before.replace('"registers": 32', '"registers": 40') == after


def test_a_kernel_that_was_only_compiled_has_no_occupancy() -> None:
    record = msgspec.structs.replace(make_static(), occupancy=None, block=None)
    content = canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), record)]))
    assert b"occupancy" not in content
    assert decode(content, PATH, "sm_90") == merge_static(None, "sm_90", [(NVRTC, make_key(), record)])


def test_keys_are_sorted_at_every_level() -> None:
    def check(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert [name for name, _ in pairs] == sorted(name for name, _ in pairs)
        return dict(pairs)

    keys = [make_key("test_b"), make_key("test_a", "z"), make_key("test_a", "a"), make_key("test_\u00e9")]
    session = make_session()
    file = merge_time(None, H200, [(key, make_time(session, counters={"b": 1.0, "a": 2.5})) for key in keys], [session])
    json.loads(canonical_bytes(file), object_pairs_hook=check)


# --- what never becomes a file -------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["midmean", "counters", "tick_ns"])
def test_nan_and_infinity_are_never_written(tmp_path: Path, field: str, value: float) -> None:
    session = make_session(**({"tick_ns": value} if field == "tick_ns" else {}))
    entry = make_round(session)
    if field == "midmean":
        entry = msgspec.structs.replace(entry, **{field: value})
    record = make_time(session, rounds=[entry], counters={"dram": value} if field == "counters" else {})
    with pytest.raises(UnwritableEvidenceError, match=r"cannot become a baseline for nvidia-h200.*finite"):
        BaselineStore(tmp_path / "baselines").write(time_update(session, record))
    assert not (tmp_path / "baselines").exists()


def test_nan_in_static_evidence_is_never_written() -> None:
    occupancy = make_static().occupancy
    assert occupancy is not None
    record = msgspec.structs.replace(make_static(), occupancy=msgspec.structs.replace(occupancy, fraction=math.nan))
    with pytest.raises(UnwritableEvidenceError, match="fraction is nan"):
        canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), record)]))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"midmean": 0.0}, "a time is outside"),
        ({"midmean": 1e16}, "a time is outside"),
        ({"sm_clock_mhz": (-1, 1980)}, "below zero"),
        ({"sm_clock_mhz": (1980, 2**63)}, "beyond 64 bits"),
    ],
)
def test_impossible_rounds_are_never_written(changes: dict[str, object], problem: str) -> None:
    session = make_session()
    entry = msgspec.structs.replace(make_round(session), **changes)
    with pytest.raises(UnwritableEvidenceError, match=problem):
        canonical_bytes(time_file(("a", make_time(session, rounds=[entry])), sessions=[session]))


def test_other_impossible_evidence_is_never_written() -> None:
    session = make_session()
    with pytest.raises(UnwritableEvidenceError, match="no rounds"):
        canonical_bytes(time_file(("a", make_time(session, rounds=[])), sessions=[session]))
    with pytest.raises(UnwritableEvidenceError, match="not a SHA-256"):
        canonical_bytes(time_file(("a", make_time(session, cubin="../../x")), sessions=[session]))
    with pytest.raises(UnwritableEvidenceError, match="registers is -1, below zero"):
        canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static(-1))]))
    with pytest.raises(UnwritableEvidenceError, match=r"opcodes.fp32 is -1, below zero"):
        canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(), make_static(32, {"fp32": -1}))]))
    for changes, problem in (({"tick_ns": -1.0}, "below zero"), ({"overhead_ns": 1e16}, "out of range")):
        bad = make_session(**changes)
        with pytest.raises(UnwritableEvidenceError, match=problem):
            canonical_bytes(time_file(("a", make_time(bad)), sessions=[bad]))


@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "\u202e", "\ud800"])
def test_names_that_could_steer_a_terminal_are_never_written(text: str) -> None:
    with pytest.raises(UnwritableEvidenceError, match="control characters") as caught:
        canonical_bytes(merge_static(None, "sm_90", [(NVRTC, make_key(workload=text), make_static())]))
    assert text not in str(caught.value)


def test_file_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "baselines/sm_90/test_x.json"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    with pytest.raises(UnreadableBaselineError, match=r"test_x\.json.*larger than 16 MB"):
        BaselineStore(tmp_path / "baselines").static("sm_90", make_key(module="test_x.py"), NVRTC)


def test_unknown_newer_schema_is_refused_with_a_clear_message() -> None:
    content = canonical_bytes(recorded(make_session())).replace(
        f'"schema": {SCHEMA_VERSION}'.encode(), b'"schema": 7, "future": 1'
    )
    with pytest.raises(NewerSchemaError) as caught:
        decode(content, PATH, H200)
    assert str(caught.value) == (
        "baselines/file.json: this baseline has schema version 7; this pytest-gpuperf knows up to version "
        f"{SCHEMA_VERSION}.\n"
        "Upgrade pytest-gpuperf to the release that wrote it (pip install --upgrade pytest-gpuperf)."
    )


def test_a_newer_schema_is_never_overwritten(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "baselines")
    *_, file = store.write(time_update(make_session()))
    newer = file.read_bytes().replace(f'"schema": {SCHEMA_VERSION}'.encode(), b'"schema": 99')
    file.write_bytes(newer)
    with pytest.raises(NewerSchemaError):
        store.write(time_update(make_session(2)))
    assert file.read_bytes() == newer


# --- sessions ------------------------------------------------------------------------------------


def ids(file: TimeFile) -> list[str]:
    return [session.id for session in file.sessions]


def test_appended_sessions_keep_order() -> None:
    one, two, three = make_session(1), make_session(2), make_session(3)
    file = recorded(one, two, three)
    assert ids(file) == [one.id, two.id, three.id]
    assert [entry.session for entry in only(file).rounds] == [one.id] * 2 + [two.id] * 2 + [three.id] * 2


def test_merge_of_two_sessions_sorts_them_by_date() -> None:
    earlier, later = make_session(1), make_session(2)
    assert canonical_bytes(recorded(later, earlier)) == canonical_bytes(recorded(earlier, later))


def test_merge_of_two_sessions_of_one_second_keeps_the_order_of_recording() -> None:
    first, second = make_session(1, id="z"), make_session(1, id="a")
    assert ids(recorded(first, second)) == ["z", "a"]


def test_the_last_five_sessions_of_a_workload_are_kept() -> None:
    sessions = [make_session(number) for number in range(1, 8)]
    file = recorded(*sessions)
    assert ids(file) == [session.id for session in sessions[-KEPT_SESSIONS:]]
    assert len(only(file).rounds) == 2 * KEPT_SESSIONS


def test_a_session_stays_while_another_workload_refers_to_it() -> None:
    sessions = [make_session(number) for number in range(1, 8)]
    file = merge_time(None, H200, [(make_key("test_other"), make_time(sessions[0]))], sessions[:1])
    assert ids(recorded(*sessions, old=file)) == [sessions[0].id, *[session.id for session in sessions[2:]]]


def test_recording_a_session_twice_does_not_double_its_rounds() -> None:
    assert canonical_bytes(recorded(make_session(1), make_session(1))) == canonical_bytes(recorded(make_session(1)))


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": Identity(code="d0" * 32, launch="grid=(1024, 1, 1) block=(32, 32, 1) shared=0")},
        {"identity": Identity(code="c0" * 32, launch="grid=(512, 1, 1) block=(32, 32, 1) shared=0")},
        {"identity": Identity(code="", launch="")},
        {"timer": "graph"},
        {"cache": "warm"},
    ],
    ids=["code", "launch", "callable", "timer", "cache"],
)
def test_a_different_execution_timer_or_cache_replaces_the_rounds(changes: dict[str, object]) -> None:
    old, session = recorded(make_session(1)), make_session(2)
    new = make_time(session, **changes)
    file = merge_time(old, H200, [(make_key(), new)], [session])
    assert ids(file) == [session.id]
    assert {entry.session for entry in only(file).rounds} == {session.id}


def test_a_comment_in_the_source_appends() -> None:
    identity = msgspec.structs.replace(make_time(make_session()).identity, source="5e" * 32)
    session = make_session(2)
    file = merge_time(recorded(make_session(1)), H200, [(make_key(), make_time(session, identity=identity))], [session])
    assert len(file.sessions) == 2
    assert only(file).identity == identity


def test_counters_survive_a_recording_without_them() -> None:
    first, second, third = make_session(1), make_session(2), make_session(3)
    file = merge_time(None, H200, [(make_key(), make_time(first, counters={"dram": 5.0, "l2": 7.0}))], [first])
    file = recorded(second, old=file)
    assert only(file).counters == {"dram": 5.0, "l2": 7.0}
    file = merge_time(file, H200, [(make_key(), make_time(third, counters={"dram": 6.0}))], [third])
    assert only(file).counters == {"dram": 6.0, "l2": 7.0}
    other = make_time(third, timer="graph")
    after = only(merge_time(file, H200, [(make_key(), other)], [third]))
    assert after.counters == {"dram": 6.0, "l2": 7.0}
    assert {entry.session for entry in after.rounds} == {third.id}
    cold_or_warm = make_time(third, cache="warm" if other.cache == "cold" else "cold")
    assert only(merge_time(file, H200, [(make_key(), cold_or_warm)], [third])).counters == {}


def test_counters_alone_replace_those_of_a_record_and_leave_its_rounds() -> None:
    session = make_session(1)
    file = merge_time(None, H200, [(make_key(), make_time(session, counters={"dram": 5.0, "l2": 7.0}))], [session])
    after = merge_time(file, H200, [], [], [(make_key(), Counts({"dram": 6.0}))])
    assert only(after).counters == {"dram": 6.0}
    assert only(after).rounds == only(file).rounds
    assert after.sessions == file.sessions


def test_a_recording_replaces_the_ranges_of_the_one_before() -> None:
    first, second = make_session(1), make_session(2)
    ranges = {"dram": (4.0, 5.0), "l2": (7.0, 8.0)}
    old = make_time(first, counters={"dram": 5.0, "l2": 7.0}, counter_ranges=ranges)
    file = merge_time(None, H200, [(make_key(), old)], [first])
    assert decode(canonical_bytes(file), PATH, H200) == file
    file = merge_time(file, H200, [(make_key(), make_time(second, counters={"dram": 9.0}))], [second])
    assert only(file).counters == {"dram": 9.0, "l2": 7.0}
    assert only(file).counter_ranges == {"l2": (7.0, 8.0)}


def test_counters_without_a_record_are_refused() -> None:
    with pytest.raises(UnwritableEvidenceError, match="there is none"):
        merge_time(None, H200, [], [], [(make_key(), Counts({"dram": 6.0}))])


def test_counts_stay_exact_and_ratios_get_six_digits() -> None:
    session = make_session(1)
    figures = {"count": 12_345_678_901.0, "ratio": 12.345678901234}
    file = merge_time(None, H200, [(make_key(), make_time(session, counters=figures))], [session])
    assert only(file).counters == {"count": 12_345_678_901.0, "ratio": 12.3457}


# --- rounding ------------------------------------------------------------------------------------


@given(finite, st.floats(min_value=1e-6, max_value=1e12))
def test_the_rounding_error_is_a_twentieth_of_the_noise_within_the_digits(time_ns: float, noise_ns: float) -> None:
    rounded = round_time(time_ns, noise_ns)
    error = abs(rounded - time_ns)
    assert error < noise_ns / 20 * (1 + 1e-9) or error <= time_ns * 5e-7
    assert error <= time_ns * 5e-4
    assert rounded == float(f"{rounded:.6e}")
    assert round_time(rounded, noise_ns) == rounded


@given(st.lists(finite, min_size=2, max_size=5).map(sorted), st.floats(min_value=1e-6, max_value=1e12))
def test_rounding_keeps_quantiles_in_order(times: list[float], noise_ns: float) -> None:
    rounded = [round_time(time, noise_ns) for time in times]
    assert rounded == sorted(rounded)


@pytest.mark.parametrize(
    ("time_ns", "noise_ns", "rounded"),
    [
        (51234.5678, 140.0, 51230.0),
        (51234.5678, 100.0, 51235.0),
        (51234.5678, 1e6, 51230.0),
        (51234.5678, 1e-3, 51234.57),
        (2345.678, 0.0, 2345.678),
    ],
)
def test_digits_follow_the_noise_between_four_and_seven(time_ns: float, noise_ns: float, rounded: float) -> None:
    assert round_time(time_ns, noise_ns) == rounded


def test_without_spread_the_tick_is_the_noise() -> None:
    session = make_session(tick_ns=32.0)
    flat = make_round(session, midmean=123456.789, iqr=0.0)
    file = time_file(("a", make_time(session, rounds=[flat])), sessions=[session])
    assert only(file).rounds[0].midmean == 123457.0


def test_recording_again_does_not_round_what_is_stored_once_more() -> None:
    first = recorded(make_session(1))
    spread = make_round(make_session(1), midmean=100.05, iqr=9.99)
    kept = msgspec.structs.replace(spread, midmean=100.0512345)
    stored = msgspec.structs.replace(
        first, tests={"test_transpose": {"padded": msgspec.structs.replace(only(first), rounds=(kept,))}}
    )
    assert only(recorded(make_session(2), old=stored)).rounds[0] == kept


def test_static_figures_are_never_rounded(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    store.write(Update(static={("sm_90", NVRTC, make_key()): make_static()}))
    record = store.static("sm_90", make_key(), NVRTC).record
    assert record is not None
    assert record.occupancy is not None
    assert record.occupancy.fraction == 2 / 3


def test_static_evidence_of_other_toolchains_stays() -> None:
    old = merge_static(None, "sm_90", [("nvrtc 12.9.1", make_key(), make_static(30))])
    new = merge_static(old, "sm_90", [(NVRTC, make_key(), make_static())])
    assert new == StaticFile(
        target="sm_90",
        schema=SCHEMA_VERSION,
        toolchains={
            "nvrtc 12.9.1": {"test_transpose": {"padded": make_static(30)}},
            NVRTC: {"test_transpose": {"padded": make_static()}},
        },
    )
    assert old.toolchains.keys() == {"nvrtc 12.9.1"}


def test_cubins_are_binary_and_compressed(tmp_path: Path) -> None:
    content = bytes(range(256)) + CUBIN + b"\r\n"
    [file] = BaselineStore(tmp_path).write(Update(cubins=[content]))
    assert lzma.decompress(file.read_bytes(), lzma.FORMAT_ALONE) == content
