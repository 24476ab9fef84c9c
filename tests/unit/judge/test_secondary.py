"""Figures beside the time: exact ones at their tolerance, host times in two processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import KEY

from pytest_gpuperf.judge.secondary import as_on_record, incomparable, judge, new, not_asked_for
from pytest_gpuperf.model.time_record import HostTime
from pytest_gpuperf.model.verdict import Judgement, SecondaryKind, Verdict

RECORD = HostTime(ratios=(0.5, 0.49, 0.51), time_ns=4000.0, cpu="a CPU", made_by="CPython 3.12")

# --- exact figures -------------------------------------------------------------------------------


def exactly(before: float, after: float, kind: SecondaryKind = "memory", tolerance: float | None = None) -> Judgement:
    return judge(KEY, "nvidia-h200", kind, before, after, tolerance)


@given(before=st.floats(0, 1e6), after=st.floats(0, 1e6), tolerance=st.floats(0.001, 0.5))
def test_within_the_tolerance_is_the_same(before: float, after: float, tolerance: float) -> None:
    verdict = exactly(before, after, "accuracy", tolerance).verdict
    assert (verdict is Verdict.WORSE) == (after > before + tolerance * before)
    assert (verdict is Verdict.BETTER) == (after < before - tolerance * before)


@pytest.mark.parametrize(("kind", "before", "after", "verdict", "words"), [
    ("memory", 123_456, 123_456, "SAME", "device memory 123456 -> 123456 bytes"),
    ("memory", 1000, 1005, "SAME", "device memory 1000 -> 1005 bytes (+0.5 %)"),
    ("memory", 1000, 995, "SAME", "device memory 1000 -> 995 bytes (-0.5 %)"),
    ("memory", 1000, 1006, "WORSE", "device memory 1000 -> 1006 bytes (+0.6 %)"),
    ("memory", 1000, 994, "BETTER", "device memory 1000 -> 994 bytes (-0.6 %)"),
    ("accuracy", 0.0, 0.4, "WORSE", "error 0 -> 0.4"),
    ("accuracy", 0.5, 0.55, "SAME", "error 0.5 -> 0.55 (+10.0 %)"),
    ("accuracy", 0.4, 0.123456, "BETTER", "error 0.4 -> 0.1235 (-69.1 %)"),
])  # fmt: skip
def test_exact_figures_and_changes(kind: SecondaryKind, before: float, after: float, verdict: str, words: str) -> None:
    found = exactly(before, after, kind)
    (change,) = found.changes
    way = {"SAME": "neutral", "WORSE": "worse", "BETTER": "better"}[verdict]
    assert (str(change), change.direction) == (words, way)
    reason = "" if verdict == "SAME" else f"{change.what} got {way}"
    assert found == Judgement(
        key=KEY, target="nvidia-h200", kind=kind, verdict=Verdict(verdict), reason=reason, changes=(change,)
    )


def test_a_figure_without_a_record_is_new() -> None:
    assert new(KEY, "nvidia-h200", "host") == Judgement(
        key=KEY, target="nvidia-h200", kind="host", verdict=Verdict.NEW,
        reason="no recorded host time: record it with pytest --update-baselines=new",
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "words"), [("accuracy", "error"), ("memory", "device memory")])
def test_a_recorded_figure_that_is_not_asked_for_is_not_measured(kind: SecondaryKind, words: str) -> None:
    asked = {"accuracy": "accuracy=", "memory": "measure=('memory',)"}[kind]
    assert not_asked_for(KEY, "nvidia-h200", kind) == Judgement(
        key=KEY, target="nvidia-h200", kind=kind, verdict=Verdict.NOT_MEASURED,
        reason=f"its {words} is recorded, but the test does not measure it: pass {asked} again, or record it again",
    )  # fmt: skip


# --- host times ----------------------------------------------------------------------------------


def host(after_ns: float, second_ns: float | None = None, tolerance: float | None = None) -> Judgement:
    return judge(KEY, "nvidia-h200", "host", RECORD.time_ns, after_ns, tolerance, second_ns)


def test_a_host_time_is_that_of_a_machine_on_which_fixed_work_takes_as_long_as_on_record() -> None:
    now = HostTime(ratios=(1.0,), time_ns=5000.0, cpu="a CPU", made_by="CPython 3.12")
    assert as_on_record(RECORD, now) == 8000.0
    assert as_on_record(RECORD, RECORD) == 4000.0


GOT_WORSE, GOT_BETTER = "host time got worse", "host time got better"


@pytest.mark.parametrize(("after_ns", "second_ns", "tolerance", "verdict", "reason"), [
    (4000, None, None, Verdict.SAME, ""),
    (5080, None, None, Verdict.SAME, ""),  # by as much equal work has differed between two processes
    (6000, None, None, Verdict.SAME, ""),
    (6001, None, None, Verdict.WORSE, GOT_WORSE),
    (6001, 6001, None, Verdict.WORSE, GOT_WORSE),
    (8000, 5999, None, Verdict.INCONCLUSIVE, "worse in one process, and x1.500 in the next"),
    (8000, 1000, None, Verdict.INCONCLUSIVE, "worse in one process, and x0.250 in the next"),
    (1999, None, None, Verdict.BETTER, GOT_BETTER),
    (1999, 1999, None, Verdict.BETTER, GOT_BETTER),
    (1999, 4000, None, Verdict.SAME, ""),
    (4000, 9000, None, Verdict.SAME, ""),
    (4500, 4500, 0.1, Verdict.WORSE, GOT_WORSE),
    (4300, 4300, 0.1, Verdict.SAME, ""),
])  # fmt: skip
def test_both_processes_have_to_agree(
    after_ns: float, second_ns: float | None, tolerance: float | None, verdict: Verdict, reason: str
) -> None:
    found = host(after_ns, second_ns, tolerance)
    assert (found.key, found.target, found.kind) == (KEY, "nvidia-h200", "host")
    assert (found.verdict, found.reason) == (verdict, reason)
    (change,) = found.changes
    assert (change.direction == "neutral") == (verdict in (Verdict.SAME, Verdict.INCONCLUSIVE))
    assert change.before == "4 us"


@pytest.mark.parametrize(("cpu", "made_by", "is_other"), [
    ("a CPU", "CPython 3.12", False), ("another CPU", "CPython 3.12", True), ("a CPU", "CPython 3.13", True),
])  # fmt: skip
def test_a_record_of_another_machine_is_not_compared(cpu: str, made_by: str, is_other: bool) -> None:
    found = incomparable(KEY, "nvidia-h200", RECORD, HostTime(ratios=(1.0,), time_ns=1.0, cpu=cpu, made_by=made_by))
    assert (found is not None) is is_other
    if found is not None:
        assert (found.key, found.target, found.kind) == (KEY, "nvidia-h200", "host")
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "record it on this machine with pytest --update-baselines=all" in found.reason
