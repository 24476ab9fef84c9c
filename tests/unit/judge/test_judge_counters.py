"""Counters against counters: exact ones exactly, near-exact ones by their band, the rest never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import KEY

from pytest_gpuperf.judge.counters import Counts, Metric, compare_counters, not_counted, replaced, summed_up, widened
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import Identity, TimeRecord
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

EXACT = Metric("sectors", "load sectors", "sectors")
BAND = Metric("dram__bytes", "DRAM bytes read", "bytes", tolerance=0.02, floor=1000.0)
HIGHER = Metric("hits", "hit rate", "%", better="higher", tolerance=0.0)
WORK = Metric("adds", "adds", better="neutral", tolerance=0.0)
INFO = Metric("stalls", "stalls", tolerance=None)
TABLE = (EXACT, BAND, HIGHER, WORK, INFO)
BASE = {"sectors": 100.0, "dram__bytes": 1e6, "hits": 50.0, "adds": 7.0, "stalls": 3.0}
DONE = {"code": "aa", "launch": "grid=(1, 1, 1)", "arguments": ("float32[8]",)}


def judge(new, old=BASE, rules=TABLE, *, before=(), after=(), notes=(), cache="cold"):
    """``before`` and ``after`` are what differs from ``DONE``."""
    was, now = (Identity(**{**DONE, **dict(one)}) for one in (before, after))
    record = TimeRecord(identity=was, timer="cupti", cache="cold", counters=old)
    evidence = WorkloadEvidence(key=KEY, identity=now, cache=cache, counters=new)
    return compare_counters("nvidia-h200", record, evidence, rules, notes)


@pytest.mark.parametrize(("old", "new", "verdict"), [
    ({}, {}, Verdict.UNCHANGED),
    ({}, {"sectors": 101.0}, Verdict.WORSE),
    ({}, {"sectors": 99.0}, Verdict.BETTER),
    ({}, {"hits": 49.0}, Verdict.WORSE),
    ({}, {"hits": 51.0}, Verdict.BETTER),
    ({}, {"sectors": 99.0, "hits": 49.0}, Verdict.WORSE),
    ({}, {"dram__bytes": 1.02e6}, Verdict.UNCHANGED),
    ({}, {"dram__bytes": 1.0201e6}, Verdict.WORSE),
    ({}, {"dram__bytes": 0.98e6}, Verdict.UNCHANGED),
    ({}, {"dram__bytes": 0.9799e6}, Verdict.BETTER),
    ({"dram__bytes": 0.0}, {"dram__bytes": 1000.0}, Verdict.UNCHANGED),
    ({"dram__bytes": 0.0}, {"dram__bytes": 1001.0}, Verdict.WORSE),
    ({}, {"stalls": 300.0}, Verdict.UNCHANGED),
])  # fmt: skip
def test_verdict_by_counters(old, new, verdict):
    assert judge({**BASE, **new}, {**BASE, **old}).verdict is verdict


def test_a_judgement_says_whose_counters_they_are_and_what_changed():
    found = Judgement(key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.UNCHANGED, notes=("a note",))
    assert judge(BASE, notes=("a note",)) == found
    assert judge({**BASE, "sectors": 99.0, "hits": 75.0}) == Judgement(
        key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.BETTER,
        reason="the counters got better: load sectors, hit rate",
        changes=(
            Change(what="load sectors", before=100.0, after=99.0, unit="sectors", direction="better", note="-1.00 %"),
            Change(what="hit rate", before=50.0, after=75.0, unit="%", direction="better", note="+50.00 %"),
        ),
    )  # fmt: skip
    assert judge({**BASE, "sectors": 101.0}).reason == "the counters got worse: load sectors"
    assert judge({**BASE, "sectors": 5.0}, {**BASE, "sectors": 0.0}).changes[0].note == ""
    (work,) = judge({**BASE, "adds": 9.0}).changes
    assert work.direction == "neutral"
    assert not_counted(KEY, "nvidia-h200", "ncu failed") == Judgement(
        key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.NOT_MEASURED, reason="ncu failed"
    )


def test_nothing_on_record_is_new():
    why = "no recorded counters: record them with pytest --update-baselines --gpuperf-ncu"
    new = Judgement(key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.NEW, reason=why, notes=("a note",))
    assert judge(BASE, {}, notes=["a note"]) == new
    evidence = WorkloadEvidence(key=KEY, counters=BASE)
    assert compare_counters("nvidia-h200", None, evidence, TABLE, ["a note"]) == new


@pytest.mark.parametrize(("more", "words"), [
    ({"after": {"launch": "grid=(2, 1, 1)"}}, "the launch changed from grid=(1, 1, 1) to grid=(2, 1, 1)"),
    ({"after": {"arguments": ("float32[9]",)}}, "argument 1 was float32[8] and is float32[9]"),
    ({"before": {"arguments": ()}}, "0 arguments became 1"),
    ({"cache": "warm"}, "the recorded counters are of a cold L2, the new ones of a warm L2"),
    ({"old": {"stalls": 3.0, "own": 1.0}}, "no gated metric was both recorded and collected"),
])  # fmt: skip
def test_other_work_and_other_caches_are_not_comparable(more, words):
    found = judge({**BASE, "sectors": 900.0}, notes=("a note",), **more)
    assert (found.verdict, found.changes, found.notes) == (Verdict.NOT_COMPARABLE, (), ("a note",))
    assert found.reason == f"{words}: record them again with pytest --update-baselines --gpuperf-ncu"


def test_other_code_is_what_the_gate_is_for():
    assert judge({**BASE, "sectors": 900.0}, after={"code": "bb"}).verdict is Verdict.WORSE


@pytest.mark.parametrize(("count", "more"), [(4, ""), (40, " and 36 more")])
def test_metrics_of_one_side_are_named(count, more):
    rules = [Metric(f"m{number}", f"metric {number}") for number in range(count)]
    every = {rule.name: 1.0 for rule in rules}
    found, turned = judge({"m0": 1.0, "stalls": 3.0}, every, [*rules, INFO]), judge(every, {"m0": 1.0}, rules)
    assert found.verdict is turned.verdict is Verdict.UNCHANGED
    named = f"metric 1, metric 2, metric 3{more}"
    assert found.notes == (f"recorded and not collected by this run: {named}",)
    added = "collected and not recorded yet (--update-baselines=new --gpuperf-ncu adds them)"
    assert turned.notes == (f"{added}: {named}",)


amounts = st.floats(0, 1e15)


@given(amounts, amounts, st.floats(0, 1), st.floats(0, 1e6))
def test_the_two_directions_of_a_change_never_agree(before, after, tolerance, floor):
    rule = Metric("sectors", "sectors", tolerance=tolerance, floor=floor)
    found = judge({"sectors": after}, {"sectors": before}, [rule]).verdict
    beyond = Verdict.WORSE if after > before else Verdict.BETTER
    assert found is (beyond if rule.beyond(before, after) else Verdict.UNCHANGED)


def test_takes_are_summed_up_and_newer_counts_replace_older_ones():
    counts = summed_up([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}, {"a": 2.0}])
    assert counts == Counts({"a": 2.0, "b": 2.0}, {"a": (1.0, 3.0)})
    record = TimeRecord(
        identity=Identity(**DONE), timer="cupti", cache="cold", counters={"a": 2.0}, counter_ranges={"a": (1.0, 3.0)}
    )
    assert Counts.of(record) == Counts({"a": 2.0}, {"a": (1.0, 3.0)})
    newer = Counts({"a": 5.0, "c": 1.0}, {"c": (1.0, 2.0)})
    assert replaced(counts, newer) == Counts({"a": 5.0, "b": 2.0, "c": 1.0}, {"c": (1.0, 2.0)})
    assert replaced(newer, counts) == Counts({"a": 2.0, "b": 2.0, "c": 1.0}, {"a": (1.0, 3.0), "c": (1.0, 2.0)})


def test_counters_that_scattered_have_a_band_of_three_times_that():
    """At least 1 %, and an absolute one where the median is zero; what informs only stays so."""
    rules = [EXACT, Metric("few", "few"), Metric("none", "none"), Metric("wide", "wide", tolerance=0.5), BAND, INFO]
    values = {"sectors": 100.0, "few": 1000.0, "wide": 10.0, "stalls": 1.0}
    ranges = {"sectors": (100.0, 102.0), "few": (1000.0, 1001.0), "none": (0.0, 2.0), "wide": (10.0, 11.0),
              "stalls": (1.0, 9.0)}  # fmt: skip
    sectors, few, none, wide, band, info = widened(rules, Counts(values, ranges))
    assert wide.tolerance == 0.5
    assert (sectors.tolerance, sectors.floor) == (0.06, 0.0)
    assert few.tolerance == 0.01
    assert (none.tolerance, none.floor) == (0.0, 6.0)
    assert (band, info) == (BAND, INFO)
