"""Counters against counters: exact ones exactly, near-exact ones by their band, the rest never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_gpuperf.judge.counters import (
    Conditions,
    Counts,
    Metric,
    compare_counters,
    not_counted,
    replaced,
    summed_up,
    widened,
)
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

KEY = Key(module="test_m.py", test="test_t", workload="w")
EXACT = Metric("sectors", "load sectors", "sectors")
BAND = Metric("dram__bytes", "DRAM bytes read", "bytes", tolerance=0.02, floor=1000.0)
HIGHER = Metric("hits", "hit rate", "%", better="higher", tolerance=0.0)
WORK = Metric("adds", "adds", better="neutral", tolerance=0.0)
INFO = Metric("stalls", "stalls", tolerance=None)
TABLE = (EXACT, BAND, HIGHER, WORK, INFO)
BASE = {"sectors": 100.0, "dram__bytes": 1e6, "hits": 50.0, "adds": 7.0, "stalls": 3.0}


def judge(new, old=BASE, **more):
    return compare_counters(KEY, "nvidia-h200", old, new, TABLE, **more)


def conditions(code="aa", launch="grid=(1, 1, 1)", arguments=("float32[8]",), cache="cold"):
    return Conditions(Identity(code=code, launch=launch, arguments=arguments), cache)


def test_equal_counters_are_unchanged():
    found = judge(dict(BASE))
    assert (found.verdict, found.kind, found.target, found.changes) == (
        Verdict.UNCHANGED, "counters", "nvidia-h200", (),
    )  # fmt: skip


def test_one_sector_more_is_worse_and_one_less_is_better():
    worse = judge({**BASE, "sectors": 101.0})
    assert worse.verdict is Verdict.WORSE
    assert worse.reason == "the counters got worse: load sectors"
    assert str(worse.changes[0]) == "load sectors 100 -> 101 sectors (+1.00 %)"
    assert judge({**BASE, "sectors": 99.0}).verdict is Verdict.BETTER


def test_takes_are_summed_up_and_newer_counts_replace_older_ones():
    counts = summed_up([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}, {"a": 2.0}])
    assert counts == Counts({"a": 2.0, "b": 2.0}, {"a": (1.0, 3.0)})
    newer = Counts({"a": 5.0, "c": 1.0}, {"c": (1.0, 2.0)})
    assert replaced(counts, newer) == Counts({"a": 5.0, "b": 2.0, "c": 1.0}, {"c": (1.0, 2.0)})
    assert replaced(newer, counts) == Counts({"a": 2.0, "b": 2.0, "c": 1.0}, {"a": (1.0, 3.0), "c": (1.0, 2.0)})


@pytest.mark.parametrize(("old", "new"), [({}, BASE), (BASE, {})])
def test_notes_are_kept_where_nothing_is_compared(old, new):
    assert judge(new, old, notes=["two kernels"]).notes == ("two kernels",)


def test_worse_wins_over_better():
    assert judge({**BASE, "sectors": 99.0, "hits": 49.0}).verdict is Verdict.WORSE


@pytest.mark.parametrize(
    ("after", "verdict"),
    [(1.02e6, Verdict.UNCHANGED), (1.0201e6, Verdict.WORSE), (0.98e6, Verdict.UNCHANGED), (0.9799e6, Verdict.BETTER)],
)
def test_near_exact_counters_have_a_band(after, verdict):
    assert judge({**BASE, "dram__bytes": after}).verdict is verdict


@pytest.mark.parametrize(("after", "verdict"), [(1000.0, Verdict.UNCHANGED), (1001.0, Verdict.WORSE)])
def test_the_floor_holds_where_there_was_nothing(after, verdict):
    assert judge({**BASE, "dram__bytes": after}, {**BASE, "dram__bytes": 0.0}).verdict is verdict


def test_where_higher_is_better_a_fall_is_worse():
    assert judge({**BASE, "hits": 49.0}).verdict is Verdict.WORSE
    assert judge({**BASE, "hits": 51.0}).verdict is Verdict.BETTER


def test_other_work_is_noted_and_does_not_gate():
    found = judge({**BASE, "adds": 9.0})
    assert found.verdict is Verdict.UNCHANGED
    assert [change.direction for change in found.changes] == ["neutral"]


def test_what_informs_never_gates():
    assert judge({**BASE, "stalls": 300.0}) == judge(dict(BASE))


def test_nothing_on_record_is_new():
    found = judge(dict(BASE), {})
    assert found.verdict is Verdict.NEW
    assert "--update-baselines --gpuperf-ncu" in found.reason


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (conditions(), conditions(launch="grid=(2, 1, 1)"), "the launch changed from grid=(1, 1, 1) to grid=(2, 1, 1)"),
        (conditions(), conditions(arguments=("float32[9]",)), "argument 1 was float32[8] and is float32[9]"),
        (conditions(arguments=()), conditions(), "0 arguments became 1"),
        (conditions(), conditions(cache="warm"), "were taken with a cold L2, these with a warm one"),
    ],
)
def test_other_work_and_other_caches_are_not_comparable(before, after, words):
    found = judge({**BASE, "sectors": 900.0}, before=before, after=after)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert words in found.reason
    assert found.changes == ()


def test_other_code_is_what_the_gate_is_for():
    found = judge({**BASE, "sectors": 900.0}, before=conditions(code="aa"), after=conditions(code="bb"))
    assert found.verdict is Verdict.WORSE


def test_sets_without_a_gating_metric_in_common_are_not_comparable():
    assert judge({"sectors": 1.0, "stalls": 3.0}, {"dram__bytes": 1.0, "stalls": 3.0}).verdict is Verdict.NOT_COMPARABLE


def test_metrics_of_one_side_are_named():
    found = judge({"sectors": 100.0, "hits": 50.0}, {"sectors": 100.0, "dram__bytes": 1e6, "stalls": 3.0})
    assert found.verdict is Verdict.UNCHANGED
    assert found.notes == (
        "recorded and not collected by this run: DRAM bytes read",
        "collected and not recorded yet (--update-baselines=new --gpuperf-ncu adds them): hit rate",
    )


def test_of_many_metrics_that_one_side_lacks_the_first_are_named() -> None:
    rules = [Metric(f"m{number}", f"metric {number}") for number in range(40)]
    old = {rule.name: 1.0 for rule in rules}
    (note,) = compare_counters(KEY, "nvidia-h200", old, {"m0": 1.0}, rules).notes
    assert note == "recorded and not collected by this run: metric 1, metric 2, metric 3 and 36 more"


def test_notes_travel_with_the_verdict():
    assert judge(dict(BASE), notes=("2 kernels: ...",)).notes == ("2 kernels: ...",)


def test_without_counters_the_reason_is_kept():
    found = not_counted(KEY, "nvidia-h200", "no ncu; install it")
    assert (found.verdict, found.kind, found.reason) == (Verdict.NOT_MEASURED, "counters", "no ncu; install it")


amounts = st.floats(0, 1e15)


@given(st.dictionaries(st.sampled_from(sorted(BASE)), amounts, min_size=1))
def test_no_set_of_counters_differs_from_itself(counters):
    assert judge(dict(counters), dict(counters)).verdict in (Verdict.UNCHANGED, Verdict.NOT_COMPARABLE)


@given(amounts, amounts, st.floats(0, 1), st.floats(0, 1e6))
def test_the_two_directions_of_a_change_never_agree(before, after, tolerance, floor):
    rule = Metric("sectors", "sectors", tolerance=tolerance, floor=floor)
    found = compare_counters(KEY, "t", {"sectors": before}, {"sectors": after}, [rule])
    if not rule.beyond(before, after):
        assert found.verdict is Verdict.UNCHANGED
    else:
        assert found.verdict is (Verdict.WORSE if after > before else Verdict.BETTER)


def test_a_judgement_says_whose_counters_they_are_and_what_changed():
    assert judge({**BASE, "sectors": 99.0, "hits": 75.0}) == Judgement(
        key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.BETTER,
        reason="the counters got better: load sectors, hit rate",
        changes=(
            Change(what="load sectors", before=100.0, after=99.0, unit="sectors", direction="better", note="-1.00 %"),
            Change(what="hit rate", before=50.0, after=75.0, unit="%", direction="better", note="+50.00 %"),
        ),
    )  # fmt: skip
    assert judge(dict(BASE)) == Judgement(
        key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.UNCHANGED, reason=""
    )
    assert not_counted(KEY, "nvidia-h200", "ncu failed") == Judgement(
        key=KEY, target="nvidia-h200", kind="counters", verdict=Verdict.NOT_MEASURED, reason="ncu failed"
    )


def test_a_change_from_nothing_has_no_percentage():
    assert judge({**BASE, "sectors": 5.0}, {**BASE, "sectors": 0.0}).changes[0].note == ""


@pytest.mark.parametrize("side", ["before", "after"])
def test_conditions_of_one_side_alone_are_no_obstacle(side):
    assert judge(dict(BASE), **{side: conditions()}).verdict is Verdict.UNCHANGED


def test_what_is_missing_is_said_with_what_to_do():
    assert judge(dict(BASE), {}).reason == (
        "no recorded counters: record them with pytest --update-baselines --gpuperf-ncu"
    )
    assert judge({"sectors": 1.0}, {"dram__bytes": 1.0}).reason == (
        "no gated metric was both recorded and collected: record anew with --update-baselines --gpuperf-ncu"
    )


def test_three_missing_metrics_are_all_named():
    rules = [Metric(f"m{number}", f"metric {number}") for number in range(4)]
    (note,) = compare_counters(KEY, "nvidia-h200", {rule.name: 1.0 for rule in rules}, {"m0": 1.0}, rules).notes
    assert note == "recorded and not collected by this run: metric 1, metric 2, metric 3"


def test_changed_arguments_are_listed():
    before, after = (conditions(arguments=("int32=7", one, "int32=8")) for one in ("int32=1", "int32=2"))
    assert judge(dict(BASE), before=before, after=after).reason.startswith("argument 2 was int32=1 and is int32=2: ")


def test_counters_that_scattered_have_a_band_of_three_times_that():
    """At least 1 %, and an absolute one where the median is zero; what informs only stays so."""
    rules = [EXACT, Metric("few", "few"), Metric("none", "none"), BAND, INFO]
    values = {"sectors": 100.0, "few": 1000.0, "none": 0.0, "stalls": 1.0}
    ranges = {"sectors": (100.0, 102.0), "few": (1000.0, 1001.0), "none": (0.0, 2.0), "stalls": (1.0, 9.0)}
    sectors, few, none, band, info = widened(rules, Counts(values, ranges))
    assert (sectors.tolerance, sectors.floor) == (0.06, 0.0)
    assert few.tolerance == 0.01
    assert (none.tolerance, none.floor) == (0.0, 6.0)
    assert (band, info) == (BAND, INFO)
