"""Single figures of machine code are outranked by an estimate of the whole, and by nothing less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import KEY, STATIC, static

from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.judge.static_weight import StaticEstimate, gains, loses, weighed
from pytest_gpuperf.model.evidence import Occupancy, StaticRecord
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

HALF = Occupancy(blocks_per_sm=4, warps_per_sm=32, fraction=0.5, limiter="registers")
OCCUPIED_BY_HALF = static(registers=64, occupancy=HALF, code_hash="half")
SPILLING = static(spill_store_bytes=12, spill_load_bytes=16, stack_bytes=8, code_hash="spilling")
FASTER = StaticEstimate(ratio=0.5, latency=1.5)
LESS_WAITING = StaticEstimate(ratio=1.0, latency=0.6)
SLOWER = StaticEstimate(ratio=1.4, latency=2.0)
MORE_WAITING = StaticEstimate(ratio=0.9, latency=1.2)
TURNS = Change(what="passes per shared-memory access", before=1, after=32, direction="worse")


def judged(
    old: StaticRecord,
    new: StaticRecord,
    estimate: StaticEstimate | None = None,
    causes: tuple[Change, ...] = (),
    cured: tuple[Change, ...] = (),
) -> Judgement:
    return weighed(compare_static(KEY, "sm_90", old, new), estimate, causes, cured)


@pytest.mark.parametrize("estimate", [FASTER, LESS_WAITING])
def test_an_occupancy_that_was_traded_for_a_faster_whole_is_not_worse(estimate: StaticEstimate) -> None:
    found = judged(STATIC, OCCUPIED_BY_HALF, estimate)
    assert found.verdict is Verdict.SAME
    assert found.reason.startswith("occupancy got worse, which an estimate of the whole kernel outranks (")
    assert ("about 50 % faster" if estimate is FASTER else "40 % less of its waiting") in found.reason


@pytest.mark.parametrize("estimate", [None, SLOWER, MORE_WAITING])
def test_an_occupancy_lost_for_nothing_gates(estimate: StaticEstimate | None) -> None:
    assert judged(STATIC, OCCUPIED_BY_HALF, estimate).verdict is Verdict.WORSE


@pytest.mark.parametrize("estimate", [None, FASTER, LESS_WAITING, SLOWER])
def test_a_risen_occupancy_alone_is_no_gain_to_accept(estimate: StaticEstimate | None) -> None:
    found = judged(OCCUPIED_BY_HALF, STATIC, estimate)
    assert found.verdict is Verdict.SAME
    assert found.reason == "the occupancy rose, which by itself proves no gain: needs a timing run"


@pytest.mark.parametrize("estimate", [None, FASTER, LESS_WAITING])
def test_spills_gate_where_no_occupancy_rises_for_them(estimate: StaticEstimate | None) -> None:
    assert judged(STATIC, SPILLING, estimate).verdict is Verdict.WORSE


def test_spills_that_bought_occupancy_are_weighed() -> None:
    assert judged(OCCUPIED_BY_HALF, SPILLING, LESS_WAITING).verdict is Verdict.SAME
    assert judged(OCCUPIED_BY_HALF, SPILLING, SLOWER).verdict is Verdict.WORSE
    assert judged(OCCUPIED_BY_HALF, SPILLING).verdict is Verdict.WORSE


def test_spills_beside_a_proven_cure_are_weighed() -> None:
    """Accesses four times as wide may be worth two registers that no longer fit."""
    found = judged(STATIC, SPILLING, FASTER, cured=(TURNS,))
    assert found.verdict is Verdict.SAME
    assert "spill stores, spill loads, stack frame got worse, which an estimate" in found.reason
    assert judged(STATIC, SPILLING, SLOWER, cured=(TURNS,)).verdict is Verdict.WORSE
    assert judged(STATIC, SPILLING, cured=(TURNS,)).verdict is Verdict.WORSE


def test_new_double_precision_gates_whatever_an_estimate_says() -> None:
    double = static(opcodes={"fp64": 3}, code_hash="double")
    assert judged(STATIC, double, FASTER, cured=(TURNS,)).verdict is Verdict.WORSE


def test_fewer_spills_are_better_without_an_estimate() -> None:
    assert judged(SPILLING, STATIC).verdict is Verdict.BETTER


def test_fewer_spills_of_a_slower_whole_are_nothing_to_accept() -> None:
    """One sum per thread needs no stack, and all the loads that sixteen had shared."""
    found = judged(SPILLING, STATIC, SLOWER)
    assert found.verdict is Verdict.SAME
    assert found.reason.startswith("spill stores, spill loads, stack frame got better, and an estimate of the whole")
    assert judged(SPILLING, STATIC, FASTER).verdict is Verdict.BETTER


def test_a_proven_cause_gates_where_the_whole_is_slower() -> None:
    other = static(instructions=77, code_hash="other")
    found = judged(STATIC, other, SLOWER, causes=(TURNS,))
    assert (found.verdict, found.changes[0]) == (Verdict.WORSE, TURNS)
    assert "passes per shared-memory access" in found.reason


@pytest.mark.parametrize("estimate", [None, FASTER, LESS_WAITING])
def test_a_proven_cause_says_nothing_where_the_whole_gains_or_is_unknown(estimate: StaticEstimate | None) -> None:
    assert judged(STATIC, static(instructions=77, code_hash="other"), estimate, causes=(TURNS,)).verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        (StaticEstimate(ratio=1.0, latency=2.0), Verdict.WORSE),
        (StaticEstimate(ratio=1.0, latency=1.01), Verdict.SAME),
        (StaticEstimate(ratio=0.95, latency=2.0), Verdict.SAME),
    ],
)
def test_a_proven_cause_gates_where_the_whole_is_as_fast_and_leaves_more_waiting_uncovered(
    estimate: StaticEstimate, verdict: Verdict
) -> None:
    assert judged(STATIC, static(code_hash="other"), estimate, causes=(TURNS,)).verdict is verdict


def test_unchanged_code_is_not_weighed() -> None:
    unchanged = compare_static(KEY, "sm_90", STATIC, STATIC)
    assert weighed(unchanged, SLOWER, (TURNS,)) is unchanged


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_whole_that_is_slower_never_gains(ratio: float, latency: float) -> None:
    assert not (gains(StaticEstimate(ratio=ratio, latency=latency)) and ratio > 1.02)


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (StaticEstimate(ratio=0.5, latency=0.1), "about 50 % faster"),
        (StaticEstimate(ratio=1.0, latency=0.25), "as fast, and 75 % less of its waiting uncovered"),
    ],
)
def test_what_outranks_a_figure_is_told_in_percent(estimate: StaticEstimate, words: str) -> None:
    found = judged(STATIC, OCCUPIED_BY_HALF, estimate)
    assert found.reason == (
        f"occupancy got worse, which an estimate of the whole kernel outranks ({words}): needs a timing run"
    )
    assert {change.direction for change in found.changes} == {"neutral"}


def test_figures_that_got_worse_or_better_are_named() -> None:
    several = "spill stores, spill loads, stack frame"
    worse, better = judged(STATIC, SPILLING, FASTER), judged(SPILLING, STATIC, FASTER)
    assert worse.reason == f"the machine code got worse: {several}"
    assert better.reason == f"the machine code got better: {several}"
    same = judged(STATIC, static(instructions=77, code_hash="other"), SLOWER)
    assert same.reason == "the machine code changed, and nothing in it that gates"


def test_occupancy_and_spills_are_outranked_together() -> None:
    """Spills that a proven cure brought, and an occupancy that fell as well."""
    both = static(registers=64, occupancy=HALF, spill_store_bytes=12, code_hash="both")
    found = judged(STATIC, both, FASTER, cured=(TURNS,))
    assert found.verdict is Verdict.SAME
    assert "occupancy" in found.reason
    assert "spill stores" in found.reason


@pytest.mark.parametrize(
    ("estimate", "gained", "lost"),
    [
        ((0.8, 9.0), True, False), ((0.81, 1.0), True, False), ((0.81, 1.01), False, False),
        ((1.02, 1.0), True, False), ((1.02, 1.03), False, True), ((1.03, 0.5), False, True),
        ((1 / 1.02, 1.03), False, True), ((0.97, 9.0), False, False), ((1.0, 1.02), False, False),
    ],
)  # fmt: skip
def test_the_bounds_of_a_gain_and_a_loss(estimate: tuple[float, float], gained: bool, lost: bool) -> None:
    assert (gains(StaticEstimate(*estimate)), loses(StaticEstimate(*estimate))) == (gained, lost)
