"""What may be compared, and what a difference is put down to."""

from __future__ import annotations

import msgspec
import pytest
from judge_samples import EDITED, IDENTITY, identity, rounds

from pytest_gpuperf.judge.comparability import Comparability, attribute, explain, same_work
from pytest_gpuperf.model.evidence import Identity, TimeRecord

RECORD = TimeRecord(identity=IDENTITY, timer="cupti", cache="cold", rounds=rounds([[1.0]]))


def relate(new: Identity, timer: str = "cupti", cache: str = "cold") -> Comparability:
    return same_work(RECORD, new, timer, cache)  # type: ignore[arg-type]


def test_equal_code_launch_and_arguments_are_unchanged_even_from_another_source_and_compiler() -> None:
    found = relate(identity(source="comment added", toolchain="nvrtc 13.1.2"))
    assert (found.relation, found.cause) == ("unchanged", "environment")


def test_edited_code_is_comparable() -> None:
    found = relate(EDITED)
    assert (found.relation, found.cause) == ("comparable", "code")


@pytest.mark.parametrize(
    ("new", "measured", "words"),
    [
        (EDITED, {"timer": "graph"}, "timer changed from cupti to graph"),
        (IDENTITY, {"cache": "warm"}, "cache state changed from cold to warm"),
        (identity(launch="callable"), {}, "launch grid=(64, 1, 1)"),
        (identity(arguments=("float32[2048] align=512", "int32=7")), {}, "argument 1 was float32[1024] align=512"),
        (identity(arguments=("float32[1024] align=512", "int32=8")), {}, "argument 2 was int32=7 and is int32=8"),
        (identity(arguments=("float32[1024] align=512",)), {}, "2 arguments became 1"),
    ],
)
def test_another_measurement_is_not_comparable_and_says_which(
    new: Identity, measured: dict[str, str], words: str
) -> None:
    found = relate(new, **measured)
    assert found.relation == "not comparable"
    assert words in found.reason
    assert "--update-baselines" in found.reason


def test_another_timer_or_cache_state_keeps_changed_code_from_the_record_and_not_from_its_pair() -> None:
    assert relate(EDITED, timer="graph").pairable
    assert relate(EDITED, cache="warm").pairable
    assert relate(identity(arguments=("int32=7",)), timer="graph").pairable  # with the arguments on record
    assert relate(EDITED, timer="graph").cause == "code"
    assert not relate(IDENTITY, cache="warm").pairable  # nothing to find out: it is the same code


def test_unchanged_code_stays_unchanged_under_another_timer() -> None:
    found = relate(IDENTITY, timer="graph")
    assert found.relation == "unchanged"
    assert found.measured_otherwise == (
        "the timer changed from cupti to graph, and times of different timers are not compared",
    )
    assert found.reason == f"the machine code and its launch are those of the baseline; {found.measured_otherwise[0]}"
    assert found.pairable


def test_every_obstacle_is_named() -> None:
    found = relate(identity(launch="callable", arguments=()), timer="graph", cache="warm")
    assert all(word in found.reason for word in ("timer", "cache", "launch", "arguments"))
    assert found.reason.split("; ") == [
        "the timer changed from cupti to graph, and times of different timers are not compared",
        "the cache state changed from cold to warm",
        "the workload changed: launch grid=(64, 1, 1) block=(256, 1, 1) shared=0 became callable",
        "the workload changed: 2 arguments became 0: record the baseline anew with pytest --update-baselines "
        "if that is intended",
    ]


OTHER_LAUNCH = "grid=(1, 1, 1) block=(256, 1, 1) shared=0"


def test_the_same_work_launched_otherwise_is_comparable_and_never_unchanged() -> None:
    found = relate(identity(launch=OTHER_LAUNCH))
    assert (found.relation, found.cause, found.pairable) == ("comparable", "launch", True)
    assert f"to {OTHER_LAUNCH}" in found.reason


def test_other_arguments_are_other_work_however_they_are_launched() -> None:
    assert relate(identity(launch=OTHER_LAUNCH, arguments=("int32=7",))).relation == "not comparable"


def test_an_array_aligned_otherwise_is_the_same_workload_but_not_unchanged() -> None:
    found = relate(identity(arguments=("float32[1024] align=4", "int32=7")))
    assert found.relation == "comparable"


def test_a_callable_is_comparable_and_never_unchanged() -> None:
    callable_ = Identity(code="", launch="callable")
    record = TimeRecord(identity=callable_, timer="cupti", cache="cold", rounds=())
    found = same_work(record, callable_, "cupti", "cold")
    assert (found.relation, found.cause) == ("comparable", "unknown")
    assert "callable" in found.reason


@pytest.mark.parametrize(
    ("new", "cause", "words"),
    [
        (identity(source="t"), "environment", "comes from the environment"),
        (identity(code="bb", toolchain="nvrtc 13.1.2"), "compiler", "changed from nvrtc 13.0.88 to nvrtc 13.1.2"),
        (identity(code="bb"), "compiler", "the source is that of the baseline, the machine code is not"),
        (identity(code="bb", source="t"), "code", "source and its machine code changed"),
        (identity(code="bb", source="t", toolchain="nvrtc 13.1.2"), "code or compiler", "and the compiler from"),
        (identity(code="bb", source=""), "code", "the machine code changed"),
        (identity(code="bb", source="", toolchain="unknown"), "code or compiler", "the machine code changed, and the"),
        (identity(launch=OTHER_LAUNCH), "launch", "the launch changed from grid=(64, 1, 1)"),
        (
            identity(launch=OTHER_LAUNCH, code="bb", source="t"),
            "code",
            f"changed; the launch changed from {IDENTITY.launch}",
        ),
    ],
)
def test_a_difference_is_attributed(new: Identity, cause: str, words: str) -> None:
    assert attribute(IDENTITY, new) == cause
    assert words in explain(attribute(IDENTITY, new), IDENTITY, new)


def test_without_a_recorded_source_the_compiler_is_not_blamed() -> None:
    assert attribute(identity(source=""), identity(source="", code="bb")) == "code"


def test_without_the_code_of_either_side_the_cause_is_not_known() -> None:
    assert attribute(identity(code=""), IDENTITY) == attribute(IDENTITY, identity(code="")) == "unknown"


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (IDENTITY, "the machine code is that of the baseline: a difference in time comes from the environment"),
        (
            identity(launch=OTHER_LAUNCH),
            f"the machine code is that of the baseline; the launch changed from {IDENTITY.launch} to {OTHER_LAUNCH}",
        ),
        (identity(code="bb"), "the source is that of the baseline, the machine code is not"),
        (identity(code="bb", source=""), "the machine code changed"),
        (EDITED, "the source and its machine code changed"),
        (
            identity(code="bb", source="t", toolchain="nvrtc 13.1.2"),
            "the source changed, and the compiler from nvrtc 13.0.88 to nvrtc 13.1.2",
        ),
        (
            identity(code="bb", source="t", toolchain=""),
            "the source changed, and the compiler from nvrtc 13.0.88 to unknown",
        ),
        (
            identity(code=""),
            "a callable has no machine code to compare: a difference may come from the code or from the environment",
        ),
    ],
)
def test_a_cause_is_one_sentence(new: Identity, sentence: str) -> None:
    assert explain(attribute(IDENTITY, new), IDENTITY, new) == sentence


@pytest.mark.parametrize("name", ["unknown", "", "triton"])
def test_two_compilers_that_are_not_known_are_not_one(name: str) -> None:
    old, edited = identity(toolchain=name), identity(toolchain=name, code="bb", source="t")
    assert attribute(old, edited) == "code or compiler"
    assert explain("code or compiler", old, edited) == "the source changed; neither says which compiler made it"
    rebuilt = identity(toolchain=name, code="bb")
    assert explain(attribute(old, rebuilt), old, rebuilt) == (
        "the source is that of the baseline, the machine code is not; neither says which compiler made it"
    )


def test_a_compiler_that_is_not_on_record_is_called_unknown() -> None:
    old, new = identity(toolchain=""), identity(code="bb", source="t")
    assert explain(attribute(old, new), old, new) == (
        "the source changed, and the compiler from unknown to nvrtc 13.0.88"
    )


def test_every_argument_that_changed_is_named_with_its_place() -> None:
    assert relate(identity(arguments=("float32[9]", "int32=8"))).reason.startswith(
        "the workload changed: argument 1 was float32[1024] align=512 and is float32[9]; "
        "the workload changed: argument 2 was int32=7 and is int32=8: record"
    )


def test_another_configuration_is_named_and_the_source_that_it_is_part_of_is_not_blamed() -> None:
    old = msgspec.structs.replace(IDENTITY, config="BLOCK=1024, num_warps=4")
    new = msgspec.structs.replace(EDITED, config="BLOCK=256, num_warps=8")
    chosen = "the configuration was BLOCK=1024, num_warps=4 and is BLOCK=256, num_warps=8"
    assert explain("code", old, new) == f"{chosen}; the machine code changed"
    assert explain("code", old, EDITED) == explain("code", IDENTITY, new) == explain("code", IDENTITY, EDITED)


def test_a_configuration_alone_is_no_other_execution() -> None:
    assert relate(msgspec.structs.replace(IDENTITY, config="BLOCK=256")).relation == "unchanged"
