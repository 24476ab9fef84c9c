"""Figures beside the time: exact ones at their tolerance, host times by blocks and by processes."""

from __future__ import annotations

import math
import random

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


def process(ratio: float, blocks: int = 30, time_ns: float | None = None) -> Comparison:
    """Blocks of one process; the clock shows the same unless ``time_ns`` says otherwise."""
    r = (math.log(ratio),) * blocks
    return Comparison(r=r, means=(), seed=1, time_ns=ratio * RECORD.time_ns if time_ns is None else time_ns)


def host(*processes: Comparison, record: HostTime = RECORD) -> Judgement | None:
    return judge_host_time(KEY, "nvidia-h200", record, LIMITS, ALPHA, processes)


def verdict(*processes: Comparison, record: HostTime = RECORD) -> Verdict | None:
    found = host(*processes, record=record)
    return None if found is None else found.verdict


@given(r=st.lists(st.floats(-0.5, math.log(1.045)), min_size=1, max_size=96))
def test_blocks_within_the_tolerance_are_never_worse(r: list[float]) -> None:
    found = Comparison(r=tuple(r), means=(), seed=1, time_ns=4000.0)
    assert verdict(found) is not Verdict.WORSE


@given(r=st.lists(st.floats(math.log(1.0451), 0.5), min_size=30, max_size=96))
def test_blocks_beyond_the_tolerance_are_worse_in_every_process(r: list[float]) -> None:
    found = Comparison(r=tuple(r), means=(), seed=1, time_ns=4000.0)
    assert verdict(found) is Verdict.WORSE
    assert verdict(*[found] * 5) is Verdict.WORSE


def test_equal_work_passes() -> None:
    coin = random.Random(1)
    blocks = tuple(coin.gauss(0, 0.005) for _ in range(30))
    assert verdict(Comparison(r=blocks, means=(), seed=1, time_ns=4000.0)) is Verdict.SAME


def test_few_blocks_decide_nothing() -> None:
    found = host(process(1.0, 3))
    assert found is not None
    assert (found.verdict, found.is_undecided) == (Verdict.INCONCLUSIVE, True)
    assert found.reason.endswith("a quieter machine or a larger --gpuperf-budget decides it")


def test_a_gain_is_confirmed_by_a_second_process() -> None:
    assert verdict(process(0.8)) is verdict(process(0.8), process(0.8)) is Verdict.BETTER
    assert verdict(process(0.8), process(1.0)) is Verdict.SAME


@pytest.mark.parametrize(("time_ns", "better"), [(3820.0, True), (3835.0, False), (5000.0, False)])
def test_slow_fixed_work_alone_is_no_gain(time_ns: float, better: bool) -> None:
    """4000 ns are on record, and the tolerance is 4.5 %."""
    assert verdict(process(0.9, time_ns=time_ns)) is (Verdict.BETTER if better else Verdict.SAME)


@pytest.mark.parametrize("time_ns", [3000.0, 4000.0, 5000.0])
def test_a_loss_is_one_whatever_the_clock_says(time_ns: float) -> None:
    assert verdict(process(1.1, time_ns=time_ns), process(1.1)) is Verdict.WORSE


def test_a_loss_that_the_next_process_does_not_find_is_inconclusive() -> None:
    found = host(process(1.1), process(1.0, 12))
    assert found is not None
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, "worse in 1 process, and x1.000 in the next")
    assert (found.changes[0].direction, found.changes[0].note) == ("neutral", "+10.0 % beside fixed work, 30+12 blocks")


@pytest.mark.parametrize(("ratios", "expected"), [
    ([1.10, 1.10], Verdict.WORSE),
    ([1.052, 1.050], None),
    ([1.052, 1.050, 1.050], Verdict.WORSE),
    ([1.058, 1.054, 1.02], Verdict.INCONCLUSIVE),
])  # fmt: skip
def test_a_mean_that_processes_may_differ_by_asks_for_another(ratios: list[float], expected: Verdict | None) -> None:
    assert verdict(*map(process, ratios)) is expected


def test_a_record_of_one_process_takes_a_larger_loss() -> None:
    one = HostTime(ratios=(0.5,), time_ns=4000.0, cpu="", made_by="")
    assert verdict(process(1.07), process(1.07), record=one) is None
    assert verdict(process(1.12), process(1.12), record=one) is Verdict.WORSE
    assert verdict(*[process(1.05)] * 4, record=one) is None
    assert verdict(*[process(1.05)] * 5, record=one) is Verdict.WORSE


def test_a_loss_is_shown_with_both_times_and_all_blocks() -> None:
    found = host(process(1.1), process(1.1, 9))
    assert found is not None
    assert (found.kind, found.reason) == ("host", "host time got worse")
    assert str(found.changes[0]) == "host time 4 us -> 4.4 us (+10.0 % beside fixed work, 30+9 blocks)"


def test_rates_of_false_and_missed_losses_with_the_scatter_of_real_processes() -> None:
    """Processes scatter by 1.5 %, their blocks by 2 % (measured: docs/results/beside_time.md)."""
    coin = random.Random(7)

    def judged(shift: float) -> Verdict | None:
        recorded = coin.gauss(0, 0.015 / math.sqrt(5))
        found: list[Comparison] = []
        while len(found) < 5:
            place = shift + coin.gauss(0, 0.015) - recorded
            r = tuple(place + coin.gauss(0, 0.02) for _ in range(96))
            found.append(Comparison(r=r, means=(), seed=1, time_ns=4000.0))
            if len(found) == 1 and verdict(*found) is not Verdict.WORSE:
                return verdict(*found)
            if len(found) > 1 and (settled := verdict(*found)) is not None:
                return settled
        raise AssertionError("five processes decide")

    equal = [judged(0.0) for _ in range(300)]
    assert equal.count(Verdict.WORSE) == 0
    assert equal.count(Verdict.SAME) >= 297
    assert [judged(math.log1p(0.1)) for _ in range(100)].count(Verdict.WORSE) >= 95


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
    assert limits_of(None) == (0.045, pytest.approx(0.0585))
    assert limits_of(0.1) == (0.1, pytest.approx(0.13))
    assert recorded_log(RECORD) == pytest.approx(math.log(0.5))
