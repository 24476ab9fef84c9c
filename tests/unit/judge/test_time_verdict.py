"""From comparisons to a verdict on a workload's time: by blocks, by processes, by its record."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import pytest
from judge_samples import KEY

from pytest_gpuperf.judge.decision import Comparison, log_e_slower
from pytest_gpuperf.judge.time_verdict import (
    TimeCase,
    by_blocks,
    by_processes,
    by_record,
    new,
    not_comparable,
    record_bound,
    unchanged,
)
from pytest_gpuperf.model.limits import TIGHT
from pytest_gpuperf.model.verdict import Judgement, TimeFigures, Verdict

CASE = TimeCase(key=KEY, target="nvidia-h200", limits=TIGHT, alpha=6e-4, record_ns=1000.0)
CHANGED = dataclasses.replace(CASE, cause="the source changed")
OBSTACLE = "its record names no commit: record it in a git repository, after a commit"


def comparison(ratio: float, blocks: int = 30, time_ns: float = 1000.0, mean: float = 0.0, seed: int = 1) -> Comparison:
    """Blocks of one ratio, with means that are ``mean`` above the midmeans."""
    r = (math.log(ratio),) * blocks
    return Comparison(r=r, means=tuple(one + mean for one in r), seed=seed, time_ns=time_ns, remarks=("a remark",))


def undecided(ratio: float, time_ns: float = 1000.0) -> Comparison:
    """Blocks on either side of the ratio: they decide nothing."""
    r = tuple(math.log(ratio) + side for side in (0.05, -0.05) * 8)
    return Comparison(r=r, means=r, seed=2, time_ns=time_ns)


def of_record(now_ns: float, method: Literal["identity", "record"], tolerance: float = 0.005) -> TimeFigures:
    return TimeFigures(before_ns=1000.0, after_ns=now_ns, ratio=now_ns / 1000, tolerance=tolerance, method=method)


def test_a_workload_without_a_record_is_new() -> None:
    assert new(CASE, 1500.0) == Judgement(
        key=KEY, target="nvidia-h200", kind="time", verdict=Verdict.NEW, notes=("x1.50 of its recorded time",),
        reason="no time baseline for nvidia-h200",
    )  # fmt: skip
    assert new(dataclasses.replace(CASE, record_ns=0.0), 1000.0).notes == ()


@pytest.mark.parametrize(("now_ns", "notes"), [
    (1040.0, ()), (1060.0, ("x1.06 of its recorded time",)), (900.0, ("x0.90 of its recorded time",)),
])  # fmt: skip
def test_equal_code_is_unchanged_whatever_its_time(now_ns: float, notes: tuple[str, ...]) -> None:
    found = unchanged(CASE, "equal code", now_ns)
    assert (found.verdict, found.reason, found.notes) == (Verdict.UNCHANGED, "equal code", notes)
    assert found.time == of_record(now_ns, "identity")
    assert unchanged(CASE, "not timed").time is None


def test_what_cannot_run_beside_its_baseline_shows_both_times() -> None:
    found = not_comparable(CHANGED, "it is missing", 1500.0)
    assert (found.verdict, found.reason) == (Verdict.NOT_COMPARABLE, "it is missing; the source changed")
    assert found.time == of_record(1500.0, "record")
    assert found.notes == (), "the ratio is what is shown"


# --- blocks --------------------------------------------------------------------------------------


def test_slower_blocks_are_final_with_a_second_process() -> None:
    one, two = comparison(1.02), comparison(1.018, 12, seed=7)
    alone, both = by_blocks(CHANGED, one), by_blocks(CHANGED, one, two)
    assert alone.verdict is both.verdict is Verdict.SLOWER
    assert alone.reason == "proven to be more than 0.5 % slower in one process; the source changed"
    assert both.reason == "proven to be more than 0.5 % slower, in two processes; the source changed"
    assert both.notes == ("a remark",)
    figures = both.time
    assert figures is not None
    assert (figures.blocks, figures.confirm_blocks, figures.seeds) == (30, 12, (1, 7))
    assert (figures.ratio, figures.before_ns) == (pytest.approx(1.02), pytest.approx(1000 / 1.02))
    assert (figures.after_ns, figures.tolerance, figures.method) == (1000.0, 0.005, "paired")
    assert figures.interval == pytest.approx((1.02, 1.02))
    assert figures.log_e == pytest.approx(log_e_slower(one.r, TIGHT, one.means))
    assert alone.time is not None
    assert alone.time.confirm_blocks == 0
    assert figures.log_e is not None
    assert figures.log_e_needed is not None
    assert figures.log_e > figures.log_e_needed == pytest.approx(-math.log(6e-4))


SLOWER = "proven to be more than 0.5 % slower"


@pytest.mark.parametrize(("first", "second", "verdict", "reason"), [
    (comparison(1.02), comparison(1.0), Verdict.INCONCLUSIVE,
     f"{SLOWER} in one process, not reproduced in a second: x1.020 and x1.000"),
    (comparison(1.02), undecided(1.0), Verdict.INCONCLUSIVE,
     f"{SLOWER} in one process, not reproduced in a second: x1.020 and x1.000"),
    (comparison(1.02), comparison(1.02, 3), Verdict.SLOWER,
     f"not confirmed: a second process was undecided after 3 blocks; {SLOWER}"),
    (comparison(0.9), None, Verdict.FASTER, "proven to be more than 0.5 % faster"),
    (comparison(0.998), None, Verdict.SAME, "proven to be less than 1 % slower"),
    (comparison(1.0), None, Verdict.SAME, "proven to be less than 1 % slower"),
    (undecided(1.0075), None, Verdict.INCONCLUSIVE, "undecided after 16 blocks: raise "
     "--gpuperf-budget, or make the launch longer"),
    (comparison(1.0, 20, mean=0.4), None, Verdict.SLOWER,
     f"{SLOWER} in one process: rare slow samples, the mean is x1.49 and the midmean x1"),
])  # fmt: skip
def test_verdict_by_blocks(first: Comparison, second: Comparison | None, verdict: Verdict, reason: str) -> None:
    found = by_blocks(CASE, first, second)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.is_undecided == (verdict is Verdict.INCONCLUSIVE)


# --- processes -----------------------------------------------------------------------------------

CALLABLE = dataclasses.replace(CASE, by_process=True)
SCATTERED = ["x1.030", "x1.040", "x0.990", "x1.030", "x0.980", "x1.040", "x0.990", "x1.030"]


def test_a_gain_of_a_callable_has_to_exceed_what_processes_differ_by() -> None:
    assert by_blocks(CASE, comparison(0.99)).verdict is Verdict.FASTER
    assert by_blocks(CALLABLE, comparison(0.99)).verdict is Verdict.SAME
    assert by_blocks(CALLABLE, comparison(0.8)).verdict is Verdict.FASTER


@pytest.mark.parametrize(("ratios", "verdict", "reason"), [
    ([1.5, 1.49], Verdict.SLOWER, f"{SLOWER}, by 2 pairs of processes: x1.500, x1.490"),
    ([1.03, 1.0], None, ""), ([1.03, 1.04, 0.99, 1.03], None, ""),
    ([1.03, 1.0, 1.0, 1.0], Verdict.SAME, "slower in this process, but not reproduced in fresh ones, by 4 "
     "pairs of processes: x1.030, x1.000, x1.000, x1.000"),
    ([1.03, 1.04, 0.99, 1.03, 0.98, 1.04, 0.99, 1.03] * 2, Verdict.INCONCLUSIVE,
     f"undecided by 16 pairs of processes: {', '.join(SCATTERED * 2)}; measure again on a quieter "
     "machine"),
])  # fmt: skip
def test_verdict_by_pairs_of_processes(ratios: list[float], verdict: Verdict | None, reason: str) -> None:
    pairs = [comparison(ratio, 30 + number, 1060.0, seed=number) for number, ratio in enumerate(ratios)]
    found = by_processes(CALLABLE, pairs)
    assert (found and found.verdict, found and found.reason) == (verdict, reason or None)
    if found is not None:
        assert found.notes == ("x1.06 of its recorded time",)
        assert found.time is not None
        assert (found.time.ratio, found.time.blocks) == (pytest.approx(ratios[0]), 30)
        assert (found.time.confirm_blocks, found.time.seeds) == (29 + len(ratios), (0, len(ratios) - 1))


# --- the record ----------------------------------------------------------------------------------


def test_the_bound_of_a_record_is_wide() -> None:
    assert record_bound([1000.0]) == pytest.approx(1.1)
    assert record_bound([1000.0, 1001.0, 999.0]) == pytest.approx(1.1)
    assert record_bound([950.0, 1050.0, 1000.0]) > record_bound([950.0, 1000.0]) > 1.15


BEYOND = "slower than recorded by more than 10 %"


@pytest.mark.parametrize(("times", "verdict", "reason"), [
    ([2000.0], Verdict.SLOWER, f"{BEYOND}, in one process"),
    ([2000.0, 2010.0], Verdict.SLOWER, f"{BEYOND}, in two processes"),
    ([1020.0], Verdict.INCONCLUSIVE, "x1.020 of its recorded time: nothing is proven below x1.10"),
    ([1100.0], Verdict.INCONCLUSIVE, "x1.100 of its recorded time: nothing is proven below x1.10"),
    ([2000.0, 1020.0], Verdict.INCONCLUSIVE, "x1.020 of its recorded time: nothing is proven below x1.10"),
])  # fmt: skip
def test_unpaired_callable_is_slower_far_beyond_its_record(times: list[float], verdict: Verdict, reason: str) -> None:
    found = by_record(CASE, times, 1.1, OBSTACLE)
    assert (found.verdict, found.is_undecided) == (verdict, False)
    assert found.reason == f"{reason}; not paired: {OBSTACLE}"
    assert found.time == of_record(times[0], "record", pytest.approx(0.1))
