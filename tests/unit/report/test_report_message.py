"""The message of a red workload: on one screen, whatever changed, with the cause and the remedy."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.advise.causes import BY_KEY
from pytest_gpuperf.judge.static_verdict import missing_static
from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import Change, Judgement, TimeFigures, Verdict
from pytest_gpuperf.report.message import NO_CAUSE, SCREEN_ROWS, WIDTH, rows, workload_lines
from pytest_gpuperf.session.exit_policy import failure_message

KEY = Key(module="suite/test_a.py", test="test_a", workload="copy")
SPILLED = Change(what="spill stores", before=0, after=176, unit="bytes", direction="worse")
SPILLING = Advice(
    cause="register spilling", gain=0.41, arch="sm_90",
    evidence=(Change(what="spilled bytes per thread", before=0, after=352, direction="worse"),),
)  # fmt: skip


def static(*changes: Change, target: str = "sm_90") -> Judgement:
    return Judgement(key=KEY, target=target, kind="static", verdict=Verdict.WORSE, changes=changes or (SPILLED,))


def slower() -> Judgement:
    figures = TimeFigures(
        before_ns=50_000.0, after_ns=84_500.0, ratio=1.69, interval=(1.687, 1.693), tolerance=0.02, method="paired",
        blocks=7,
    )  # fmt: skip
    return Judgement(key=KEY, target="nvidia-h200", kind="time", verdict=Verdict.SLOWER, time=figures,
                     reason="the upper half of the interval is above the tolerance")  # fmt: skip


def test_a_red_workload_has_ratio_interval_changes_cause_and_remedy() -> None:
    text = failure_message([static(), slower()], {KEY: (SPILLING,)})
    for words in ("copy  WORSE  on sm_90 (static)", "spill stores 0 -> 176 bytes", "copy  SLOWER  on nvidia-h200",
                  "1.69", "1.687", "cause: register spilling", "gain about 41 %, by the machine code",
                  "example: occupancy_registers", "If this change is intended"):  # fmt: skip
        assert words in text
    assert BY_KEY["register spilling"].remedy.split()[0] in text


def test_without_a_cause_the_message_says_what_sees_more() -> None:
    assert workload_lines([static()], ())[-1] == NO_CAUSE
    passed = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.NOT_MEASURED, reason="no GPU")
    assert NO_CAUSE not in workload_lines([passed], ())


def test_architectures_that_say_the_same_are_said_once() -> None:
    alike = [static(target=arch) for arch in ("sm_80", "sm_90", "sm_120")]
    lines = workload_lines(alike, ())
    assert lines[0] == "copy  WORSE  on sm_80, sm_90, sm_120 (static)"
    assert sum("spill stores" in line for line in lines) == 1
    other = static(Change(what="spill stores", before=0, after=96, direction="worse"), target="sm_120")
    assert sum("WORSE" in line for line in workload_lines([*alike[:2], other], ())) == 2


def test_what_explains_a_time_and_stands_above_it_is_not_said_again() -> None:
    grown = Change(what="instructions", before=100, after=200)
    timed = msgspec.structs.replace(slower(), changes=(SPILLED, grown))
    lines = workload_lines([static(), timed], (SPILLING,))
    assert sum("spill stores" in line for line in lines) == 1
    assert sum("instructions 100 -> 200" in line for line in lines) == 1
    assert sum("spill stores" in line for line in workload_lines([timed], (SPILLING,))) == 1


def test_causes_are_set_off_where_there_are_several_verdicts_above_them() -> None:
    other = static(Change(what="spill stores", before=0, after=96, direction="worse"), target="sm_120")
    several = workload_lines([static(), other], (SPILLING,))
    assert several[next(n for n, line in enumerate(several) if "cause:" in line) - 1] == ""
    assert "" not in workload_lines([static(), static(target="sm_80")], (SPILLING,))
    assert workload_lines([static(), other], ())[-2:] == ["", NO_CAUSE]


def test_more_causes_than_fit_give_way_before_the_first_one_does() -> None:
    many = [
        static(*(Change(what=f"figure {n}", before=n, after=2 * n + arch, direction="worse") for n in range(12)),
               target=f"sm_{arch}")
        for arch in (80, 86, 89, 90, 100, 120)
    ]  # fmt: skip
    second = Advice(cause="occupancy lost", gain=0.4, evidence=(Change(what="occupancy", before=100, after=50),))
    lines = workload_lines(many, (SPILLING, second))
    assert rows(lines) < SCREEN_ROWS
    assert "cause: register spilling" in "\n".join(lines)
    assert "occupancy lost" not in "\n".join(lines)
    few = workload_lines([static()], (SPILLING, second))
    assert "cause: occupancy lost" in "\n".join(few)


def test_a_cause_far_behind_the_first_is_not_shown() -> None:
    faint = Advice(cause="cache hit loss", gain=0.05, evidence=())
    assert "cache hit loss" not in "\n".join(workload_lines([static()], (SPILLING, faint)))


words = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=24)
changes = st.builds(
    Change, what=words, before=st.integers(0, 10**6), after=st.integers(0, 10**6), unit=st.sampled_from(["", "bytes"]),
    direction=st.sampled_from(["worse", "better", "neutral"]), note=st.sampled_from(["", "limited by registers"]),
)  # fmt: skip
advice = st.builds(
    Advice, cause=st.sampled_from(list(BY_KEY)), evidence=st.lists(changes, max_size=4).map(tuple),
    gain=st.floats(0, 1), arch=st.just("sm_90"), counted=st.booleans(),
)  # fmt: skip


@given(st.lists(st.lists(changes, min_size=1, max_size=20), min_size=1, max_size=4), st.lists(advice, max_size=5))
def test_whatever_changed_it_fits_the_screen(changed: list[list[Change]], causes: list[Advice]) -> None:
    failed = [static(*one, target=f"sm_{arch}") for one, arch in zip(changed, (80, 90, 100, 120), strict=False)]
    text = failure_message(failed, {KEY: causes})
    assert rows(text.splitlines()) <= SCREEN_ROWS
    assert all(len(line) <= WIDTH for line in text.splitlines())


@pytest.mark.parametrize("cause", BY_KEY.values(), ids=lambda cause: cause.key)
def test_every_cause_fits_beside_a_ratio_and_four_changes(cause) -> None:  # type: ignore[no-untyped-def]
    one = Advice(cause=cause.key, evidence=(SPILLED, SPILLED, SPILLED), gain=0.3, counted=True)
    text = failure_message([static(*[SPILLED] * 4), slower()], {KEY: (one, one)})
    assert rows(text.splitlines()) <= SCREEN_ROWS


def test_a_new_kernel_is_told_once_for_all_architectures() -> None:
    new = [missing_static(KEY, target, "nvrtc 13.0.88") for target in ("sm_80", "sm_90", "sm_120")]
    assert failure_message(new).splitlines() == [
        f"{KEY.workload}  NEW  on sm_80, sm_90, sm_120 (static)",
        "    no baseline: record one with pytest --update-baselines=new",
        "no baseline yet: record one with pytest --update-baselines=new and commit it",
    ]


def test_each_remedy_is_said_once() -> None:
    new = [
        Judgement(key=msgspec.structs.replace(KEY, workload=str(number)), target="sm_90", kind="static",
                  verdict=Verdict.NEW)
        for number in range(3)
    ]  # fmt: skip
    assert failure_message(new).count("no baseline yet: record one") == 1
