"""The limits of what a baseline may hold: on the limit it is written, beyond it the message says what and where."""

from __future__ import annotations

import msgspec
import pytest
from baseline_samples import (
    H200,
    NVRTC,
    make_host_time,
    make_round,
    make_session,
    make_static,
    make_time,
)  # fmt: skip
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.baselines import checks
from pytest_gpuperf.baselines.checks import (
    MAX_INTEGER,
    MAX_NAME,
    MAX_RATIO,
    MAX_TIME_NS,
    MIN_TIME_NS,
    BadContentError,
    check,
    check_each,
    check_plain,
)
from pytest_gpuperf.baselines.file_types import StaticFile, TimeFile
from pytest_gpuperf.baselines.schema_version import SCHEMA_VERSION
from pytest_gpuperf.model.beside_figures import Beside
from pytest_gpuperf.model.evidence import Session, StaticRecord, TimeRecord
from pytest_gpuperf.model.timed_round import Round

SESSION = make_session()
WHERE = "test_transpose [padded]"


def static_file(record: StaticRecord) -> StaticFile:
    tests = {"test_transpose": {"padded": record}}
    return StaticFile(target="sm_90", toolchains={NVRTC: tests}, schema=SCHEMA_VERSION)


def time_file(record: TimeRecord, *sessions: Session) -> TimeFile:
    tests = {"test_transpose": {"padded": record}}
    return TimeFile(target=H200, sessions=sessions or (SESSION,), tests=tests, schema=SCHEMA_VERSION)


def with_profile(**changes: object) -> StaticRecord:
    record = make_static()
    return msgspec.structs.replace(record, profile=msgspec.structs.replace(record.profile, **changes))


def with_fraction(fraction: float) -> StaticRecord:
    record = make_static()
    return msgspec.structs.replace(record, occupancy=msgspec.structs.replace(record.occupancy, fraction=fraction))


def with_round(**changes: object) -> TimeRecord:
    first, second = make_round(SESSION), make_round(SESSION)
    return make_time(SESSION, rounds=[first, msgspec.structs.replace(second, **changes)])


def flat(time_ns: float) -> Round:
    """A round whose times are all the same."""
    return msgspec.structs.replace(
        make_round(SESSION), midmean=time_ns, minimum=time_ns, maximum=time_ns,
        quantiles=(time_ns,) * 5,
    )  # fmt: skip


@pytest.mark.parametrize(
    "file",
    [
        static_file(with_profile(registers=0, opcodes={"fp32": 0})),
        static_file(msgspec.structs.replace(make_static(), dynamic_shared_bytes=0)),
        static_file(with_fraction(0.0)),
        static_file(with_fraction(1.0)),
        time_file(make_time(SESSION, rounds=[flat(MIN_TIME_NS)])),
        time_file(make_time(SESSION, rounds=[flat(MAX_TIME_NS)])),
        time_file(make_time(SESSION, cubin="")),
        time_file(with_round(sm_clock_mhz=(0, 0))),
        time_file(make_time(SESSION), make_session(tick_ns=0.0, overhead_ns=-MAX_TIME_NS)),
        time_file(make_time(SESSION), make_session(tick_ns=MAX_TIME_NS, overhead_ns=MAX_TIME_NS)),
        time_file(make_time(SESSION, bytes=MAX_INTEGER)),
        time_file(make_time(SESSION, beside=Beside(memory_bytes=0, accuracy=0.0))),
        time_file(make_time(SESSION, beside=Beside(host=make_host_time(ratios=(1 / MAX_RATIO, MAX_RATIO))))),
        time_file(make_time(SESSION, beside=Beside(host=make_host_time(cpu="x" * MAX_NAME, made_by="x")))),
    ],
)
def test_the_limits_themselves_are_allowed(file: StaticFile | TimeFile) -> None:
    check(file)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (static_file(with_profile(barriers=-1)), f"{NVRTC}, {WHERE}: barriers is -1, below zero"),
        (static_file(with_profile(opcodes={"fp32": -2})), f"{NVRTC}, {WHERE}: opcodes.fp32 is -2, below zero"),
        (
            static_file(msgspec.structs.replace(make_static(), dynamic_shared_bytes=-1)),
            f"{NVRTC}, {WHERE}: dynamic_shared_bytes is -1, below zero",
        ),
        (static_file(with_fraction(1.01)), f"{NVRTC}, {WHERE}: occupancy.fraction is 1.01, outside 0 to 1"),
        (static_file(with_fraction(-0.01)), f"{NVRTC}, {WHERE}: occupancy.fraction is -0.01, outside 0 to 1"),
        (time_file(make_time(SESSION, rounds=[])), f"{WHERE}: there are no rounds"),
        (time_file(make_time(SESSION, cubin="abc")), f"{WHERE}: cubin is 'abc', which is not a SHA-256"),
        (
            time_file(with_round(session="gone")),
            f"{WHERE}: round 1 belongs to session 'gone', which is not in the file",
        ),
        (
            time_file(with_round(midmean=MAX_TIME_NS * 1.01)),
            f"{WHERE}, round 1: a time is outside 0.001 to 1e+15 ns",
        ),
        (
            time_file(make_time(SESSION, beside=Beside(memory_bytes=-1))),
            f"{WHERE}, beside: memory_bytes is -1, below zero",
        ),
        (
            time_file(make_time(SESSION, beside=Beside(accuracy=-0.5))),
            f"{WHERE}, beside: accuracy is -0.5, below zero",
        ),
        (
            time_file(make_time(SESSION, beside=Beside(host=make_host_time(ratios=())))),
            f"{WHERE}, beside, host: it has no ratios, or one that is no ratio of times",
        ),
        (
            time_file(make_time(SESSION, beside=Beside(host=make_host_time(ratios=(1.0, 0.0))))),
            f"{WHERE}, beside, host: it has no ratios, or one that is no ratio of times",
        ),
        (
            time_file(make_time(SESSION, beside=Beside(host=make_host_time(time_ns=0.0)))),
            f"{WHERE}, beside, host: its time is outside 0.001 to 1e+15 ns",
        ),
        (
            time_file(make_time(SESSION, beside=Beside(host=make_host_time(cpu="x" * 201)))),
            f"{WHERE}, beside, host: a name has more than 200 characters",
        ),
        (time_file(with_round(sm_clock_mhz=(1980, -1))), f"{WHERE}, round 1: its SM clock is -1 MHz, below zero"),
        (
            time_file(make_time(SESSION), SESSION, make_session(2), SESSION),
            "two sessions have the same id (a merge kept both: delete one, or give it its own id)",
        ),
        (
            time_file(make_time(SESSION), make_session(tick_ns=2e15)),
            f"session {SESSION.id}: tick_ns is 2000000000000000.0, out of range",
        ),
        (
            time_file(make_time(SESSION), make_session(tick_ns=-1.0)),
            f"session {SESSION.id}: tick_ns is -1.0, below zero",
        ),
        (
            time_file(make_time(SESSION), make_session(overhead_ns=-2e15)),
            f"session {SESSION.id}: overhead_ns is -2000000000000000.0, out of range",
        ),
    ],
)
def test_beyond_a_limit_the_place_and_the_value_are_named(file: StaticFile | TimeFile, words: str) -> None:
    with pytest.raises(BadContentError) as caught:
        check(file)
    assert str(caught.value) == words


def test_every_record_is_checked() -> None:
    good, bad = make_static(), with_profile(spill_load_bytes=-1)
    tests = {"test_a": {"w": good}, "test_b": {"v": good, "w": bad}}
    with pytest.raises(BadContentError, match=r"^nvrtc 13\.1, test_b \[w\]: spill_load_bytes is -1"):
        check(
            StaticFile(
                target="sm_90", toolchains={"a": {"test_a": {"w": good}}, "nvrtc 13.1": tests}, schema=SCHEMA_VERSION
            )
        )


def test_a_record_that_was_only_compiled_has_no_occupancy_to_check() -> None:
    check(static_file(msgspec.structs.replace(make_static(), occupancy=None, block=None)))


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"a": [{"b": float("nan")}]}, "$.a[0].b is nan, which is not a finite number"),
        ({"a": (1.0, float("-inf"))}, "$.a[1] is -inf, which is not a finite number"),
        ({"a": 2**63}, "$.a is beyond 64 bits"),
        ([-(2**63)], "$[0] is beyond 64 bits"),
        ({"a": {"b\n": 1}}, r"$.a has the text 'b\n' with control characters"),
        ({"a": ["x", "\x1b"]}, r"$.a[1] has the text '\x1b' with control characters"),
    ],
)
def test_plain_values_are_checked_at_every_depth(tree: object, words: str) -> None:
    with pytest.raises(BadContentError) as caught:
        check_plain(tree)
    assert str(caught.value) == words


def test_the_largest_integers_are_allowed() -> None:
    check_plain({"a": [2**63 - 1, -(2**63 - 1)], "b": 1e308, "c": True, "d": None})


def test_a_long_place_is_shortened_to_two_hundred_characters() -> None:
    long = "x" * 300
    for tree in ({long: float("nan")}, {long: 2**63}, {long: "\n"}):
        with pytest.raises(BadContentError) as caught:
            check_plain(tree)
        place, _, _ = str(caught.value).partition("... ")
        assert len(place) == 197
    tests = {long: {"padded": make_time(SESSION, rounds=[])}}
    with pytest.raises(BadContentError) as caught:
        check(TimeFile(target=H200, sessions=(SESSION,), tests=tests, schema=SCHEMA_VERSION))
    assert str(caught.value) == "x" * 197 + "...: there are no rounds"


ODD_TEXT = st.text(
    alphabet=st.sampled_from('ab"\\,:[-0123456789\x00\x1f\x7f\x9f\u2028\u202e\u2069\ud800é'), max_size=25
)
ODD_INTEGER = st.integers(-(2**64), 2**64) | st.sampled_from([MAX_INTEGER, MAX_INTEGER + 1, -MAX_INTEGER - 1])


@given(ODD_TEXT, ODD_TEXT, ODD_INTEGER, st.floats())
def test_the_quick_look_passes_nothing_that_the_closer_one_refuses(
    kernel: str, workload: str, registers: int, fraction: float
) -> None:
    record = with_profile(registers=registers)
    occupancy = msgspec.structs.replace(record.occupancy, fraction=fraction)
    record = msgspec.structs.replace(record, kernel=kernel, occupancy=occupancy)
    file = StaticFile(target="sm_90", toolchains={NVRTC: {"test": {workload: record}}}, schema=SCHEMA_VERSION)
    tree = msgspec.to_builtins(file)
    if checks._is_plain(tree):
        check_each(tree, "$")


def test_the_quick_look_is_enough_for_a_usual_file() -> None:
    assert checks._is_plain(msgspec.to_builtins(static_file(make_static())))
    assert checks._is_plain(msgspec.to_builtins(time_file(make_time(SESSION))))
