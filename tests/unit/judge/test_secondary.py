"""Figures beside the time: exact ones at their tolerance, host times by blocks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import KEY

from pytest_gpuperf.judge.decision import Comparison
from pytest_gpuperf.judge.secondary import (
    incomparable,
    judge_exact,
    judge_host_time,
    limits_of,
    new,
    not_asked_for,
    recorded_log,
)
from pytest_gpuperf.model.time_record import HostTime
from pytest_gpuperf.model.verdict import BesideEvidence, Change, Judgement, Verdict

RECORD = HostTime(ratios=(0.5, 0.49, 0.51, 0.505, 0.495), time_ns=4000.0, cpu="a CPU", made_by="CPython 3.12")
ALPHA = 6e-4
LIMITS = limits_of(None)

# --- exact figures -------------------------------------------------------------------------------


def exactly(before: float, after: float, kind: BesideEvidence = "memory", tolerance: float | None = None) -> Judgement:
    return judge_exact(KEY, "nvidia-h200", kind, before, after, tolerance)


@given(before=st.integers(200, 1 << 40), percent=st.integers(1, 400))
def test_one_percent_more_memory_is_worse_and_less_is_better(before: int, percent: int) -> None:
    more = before + math.ceil(before * percent / 100)
    assert exactly(before, more).verdict is Verdict.WORSE
    assert exactly(more, before).verdict in ((Verdict.BETTER,) if percent > 1 else (Verdict.BETTER, Verdict.SAME))
    assert exactly(before, before).verdict is Verdict.SAME


@given(before=st.floats(0, 1e6), after=st.floats(0, 1e6), tolerance=st.floats(0.001, 0.5))
def test_within_the_tolerance_is_the_same(before: float, after: float, tolerance: float) -> None:
    verdict = exactly(before, after, "accuracy", tolerance).verdict
    assert (verdict is Verdict.WORSE) == (after > before + tolerance * before)
    assert (verdict is Verdict.BETTER) == (after < before - tolerance * before)


def test_a_result_that_was_exact_and_is_not_is_worse() -> None:
    judged = exactly(0.0, 0.4, "accuracy")
    assert (judged.verdict, str(judged.changes[0])) == (Verdict.WORSE, "error 0 -> 0.4")


@pytest.mark.parametrize(
    ("kind", "before", "after", "verdict", "change"),
    [
        ("memory", 1000, 1000, "SAME", Change(what="device memory", before="1000", after="1000", unit="bytes")),
        ("memory", 400_000, 404_000, "WORSE", Change(what="device memory", before="400000", after="404000",
                                                   unit="bytes", direction="worse", note="+1.0 %")),
        ("accuracy", 0.4, 0.123456, "BETTER", Change(what="error", before="0.4", after="0.1235", direction="better",
                                                    note="-69.1 %")),
    ],
)  # fmt: skip
def test_an_exact_figure_is_shown_with_its_change(
    kind: BesideEvidence, before: float, after: float, verdict: str, change: Change
) -> None:
    reason = "" if verdict == "SAME" else f"{change.what} got {change.direction}"
    assert exactly(before, after, kind) == Judgement(
        key=KEY, target="nvidia-h200", kind=kind, verdict=Verdict(verdict), reason=reason, changes=(change,)
    )


def test_a_figure_without_a_record_is_new() -> None:
    assert new(KEY, "nvidia-h200", "host") == Judgement(
        key=KEY, target="nvidia-h200", kind="host", verdict=Verdict.NEW,
        reason="no host time on record: record it with pytest --update-baselines=new",
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "words"), [("accuracy", "error"), ("memory", "device memory")])
def test_a_recorded_figure_that_is_not_asked_for_is_not_measured(kind: BesideEvidence, words: str) -> None:
    found = not_asked_for(KEY, "nvidia-h200", kind)
    asked = {"accuracy": "accuracy=", "memory": "measure=('memory',)"}[kind]
    assert found.verdict is Verdict.NOT_MEASURED
    assert found.reason == (
        f"its {words} is on record and the test does not ask for it: give {asked} again, or record it anew"
    )


# --- host times ----------------------------------------------------------------------------------


def process(ratio: float, blocks: int = 30) -> Comparison:
    """Blocks of one process whose ratio to the record is this; 4000 ns are on record."""
    return Comparison(r=(math.log(ratio),) * blocks, means=(), seed=1, time_ns=4000.0 * ratio)


def host(first: Comparison, second: Comparison | None = None) -> Judgement:
    return judge_host_time(KEY, "nvidia-h200", LIMITS, ALPHA, first, second)


@given(r=st.lists(st.floats(-0.5, math.log(1.5)), min_size=1, max_size=96))
def test_blocks_within_the_tolerance_are_never_worse(r: list[float]) -> None:
    assert host(Comparison(r=tuple(r), means=(), seed=1, time_ns=4000.0)).verdict is not Verdict.WORSE


@given(r=st.lists(st.floats(math.log(1.501), 2), min_size=30, max_size=96))
def test_blocks_beyond_the_tolerance_are_worse_in_both_processes(r: list[float]) -> None:
    found = Comparison(r=tuple(r), means=(), seed=1, time_ns=4000.0)
    assert host(found).verdict is host(found, found).verdict is Verdict.WORSE


@pytest.mark.parametrize(("first", "second", "expected"), [
    (process(1.0), None, Verdict.SAME),
    (process(1.27), None, Verdict.SAME),  # by as much equal work has differed between two processes
    (process(2.0, 3), None, Verdict.INCONCLUSIVE),
    (process(2.0), process(2.0), Verdict.WORSE),
    (process(2.0), process(1.0, 12), Verdict.INCONCLUSIVE),
    (process(0.6), None, Verdict.BETTER),
    (process(0.6), process(0.6), Verdict.BETTER),
    (process(0.6), process(1.0), Verdict.SAME),
])  # fmt: skip
def test_both_processes_have_to_agree(first: Comparison, second: Comparison | None, expected: Verdict) -> None:
    assert host(first, second).verdict is expected


def test_few_blocks_say_how_to_get_a_verdict() -> None:
    found = host(process(1.0, 3))
    assert found.is_undecided
    assert found.reason.endswith("a quieter machine or a larger --gpuperf-budget decides it")


def test_a_loss_is_shown_with_both_times_and_all_blocks() -> None:
    found, alone = host(process(2.0), process(2.0, 20)), host(process(2.0), process(1.0, 12))
    assert (found.kind, found.reason) == ("host", "host time got worse")
    assert str(found.changes[0]) == "host time 4 us -> 8 us (+100.0 % beside fixed work, 30+20 blocks)"
    assert (alone.reason, alone.changes[0].direction) == ("worse in 1 process, and x1.000 in the next", "neutral")


@pytest.mark.parametrize(("cpu", "made_by", "is_other"), [
    ("a CPU", "CPython 3.12", False), ("another CPU", "CPython 3.12", True), ("a CPU", "CPython 3.13", True),
])  # fmt: skip
def test_a_record_of_another_machine_is_not_compared(cpu: str, made_by: str, is_other: bool) -> None:
    found = incomparable(KEY, "nvidia-h200", RECORD, HostTime(ratios=(1.0,), time_ns=1.0, cpu=cpu, made_by=made_by))
    assert (found is not None) is is_other
    if found is not None:
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "record it on this machine with pytest --update-baselines=all" in found.reason


def test_a_tolerance_is_the_usual_one_or_the_given_one() -> None:
    assert limits_of(None) == (0.5, pytest.approx(0.65))
    assert limits_of(0.1) == (0.1, pytest.approx(0.13))
    assert recorded_log(RECORD) == pytest.approx(math.log(0.5))
