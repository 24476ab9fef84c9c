"""Single figures of machine code are outranked by an estimate of the whole or by measured time, and by nothing less."""

from __future__ import annotations

import msgspec
import pytest
from judge_samples import HALF, KEY, STATIC, static

from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.judge.static_weight import StaticEstimate, gains, loses, overridden_by_time, with_estimate
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import SECONDARY, Change, EvidenceKind, Judgement, Verdict

WORSE, BETTER, SAME = Verdict.WORSE, Verdict.BETTER, Verdict.SAME
OCCUPIED_BY_HALF = static(registers=64, occupancy=HALF, code_hash="half")
SPILLING = static(spill_store_bytes=12, spill_load_bytes=16, stack_bytes=8, code_hash="spilling")
BOTH = static(registers=64, occupancy=HALF, spill_store_bytes=12, code_hash="both")
DOUBLE = static(opcodes={"fp64": 3}, code_hash="double")
LAUNCHED = msgspec.structs.replace(STATIC, dynamic_shared_bytes=64)
OTHER = static(instructions=77, code_hash="other")
FASTER, LESS_WAITING = StaticEstimate(ratio=0.25, latency=1.5), StaticEstimate(ratio=1.0, latency=0.25)
SLOWER, MORE_WAITING = StaticEstimate(ratio=1.4, latency=2.0), StaticEstimate(ratio=0.9, latency=1.2)
WAVEFRONTS = Change(what="wavefronts per shared-memory access", before=1, after=32, direction="worse")
SPILLS = "spill stores, spill loads, stack frame"
OUTRANKED = "got worse; an estimate of the whole kernel overrides it"


def judged(
    old: StaticRecord, new: StaticRecord, estimate: StaticEstimate | None = None, *, causes: int = 0, cured: int = 0
) -> Judgement:
    """With so many proven causes, or cures."""
    return with_estimate(compare_static(KEY, "sm_90", old, new), estimate, [WAVEFRONTS] * causes, [WAVEFRONTS] * cured)


@pytest.mark.parametrize(("old", "new", "estimate", "verdict", "reason"), [
    (STATIC, OCCUPIED_BY_HALF, FASTER, SAME, f"occupancy {OUTRANKED} (about 75 % faster): needs a timing run"),
    (STATIC, OCCUPIED_BY_HALF, LESS_WAITING, SAME,
     f"occupancy {OUTRANKED} (as fast, with 75 % less exposed latency): needs a timing run"),
    (STATIC, OCCUPIED_BY_HALF, None, WORSE, "the machine code got worse: occupancy"),
    (STATIC, OCCUPIED_BY_HALF, SLOWER, WORSE, "the machine code got worse: occupancy"),
    (STATIC, OCCUPIED_BY_HALF, MORE_WAITING, WORSE, "the machine code got worse: occupancy"),
    *((DOUBLE, OCCUPIED_BY_HALF, estimate, verdict, reason) for estimate, verdict, reason in (
        (StaticEstimate(1.0, 1.7), SAME, f"occupancy {OUTRANKED} (as fast): needs a timing run"),
        (StaticEstimate(0.9, 1.2), SAME, f"occupancy {OUTRANKED} (about 10 % faster): needs a timing run"),
        (StaticEstimate(1.03, 1.7), WORSE, "the machine code got worse: occupancy"),
        (None, WORSE, "the machine code got worse: occupancy"))),
    *((OCCUPIED_BY_HALF, STATIC, estimate, SAME, "the occupancy rose, which proves no gain: needs a timing "
       "run") for estimate in (None, FASTER, LESS_WAITING, SLOWER)),
    *((STATIC, SPILLING, estimate, WORSE, f"the machine code got worse: {SPILLS}")
      for estimate in (None, FASTER, LESS_WAITING)),
    (OCCUPIED_BY_HALF, SPILLING, LESS_WAITING, SAME,
     f"{SPILLS} {OUTRANKED} (as fast, with 75 % less exposed latency): needs a timing run"),
    (OCCUPIED_BY_HALF, SPILLING, SLOWER, WORSE, f"the machine code got worse: {SPILLS}"),
    (OCCUPIED_BY_HALF, SPILLING, None, WORSE, f"the machine code got worse: {SPILLS}"),
    (SPILLING, STATIC, None, BETTER, f"the machine code got better: {SPILLS}"),
    (SPILLING, STATIC, FASTER, BETTER, f"the machine code got better: {SPILLS}"),
    (SPILLING, STATIC, SLOWER, SAME, f"{SPILLS} got better, but an estimate of the whole kernel did "
     "not: needs a timing run"),
    (STATIC, OTHER, SLOWER, SAME, "the machine code changed; no gated metric regressed"),
    (static(stack_bytes=64), static(spill_store_bytes=12, code_hash="other"), FASTER, WORSE,
     "the machine code got worse: spill stores"),
    (STATIC, LAUNCHED, SLOWER, SAME, "the launch changed (dynamic shared "
     "memory 0 -> 64 bytes): needs a timing run"),
])  # fmt: skip
def test_verdict_by_estimate(
    old: StaticRecord, new: StaticRecord, estimate: StaticEstimate | None, verdict: Verdict, reason: str
) -> None:
    found = judged(old, new, estimate)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert OUTRANKED not in reason or {change.direction for change in found.changes} <= {"neutral", "better"}


@pytest.mark.parametrize(("new", "estimate", "verdict", "outranked"), [
    (SPILLING, FASTER, SAME, SPILLS), (SPILLING, SLOWER, WORSE, ""), (SPILLING, None, WORSE, ""),
    (BOTH, FASTER, SAME, "spill stores, occupancy"), (DOUBLE, FASTER, WORSE, ""),
], ids=lambda one: getattr(one, "value", None))  # fmt: skip
def test_cured_spills(new: StaticRecord, estimate: StaticEstimate | None, verdict: Verdict, outranked: str) -> None:
    """Accesses four times as wide may be worth two registers that no longer fit; new double precision gates."""
    found = judged(STATIC, new, estimate, cured=1)
    assert (found.verdict, found.reason.partition(f" {OUTRANKED}")[0] == outranked) == (verdict, bool(outranked))


@pytest.mark.parametrize(("estimate", "verdict"), [
    (SLOWER, WORSE), (StaticEstimate(1.0, 2.0), WORSE), (StaticEstimate(1.0, 1.01), SAME),
    (StaticEstimate(0.95, 2.0), SAME), (None, SAME), (FASTER, SAME), (LESS_WAITING, SAME),
])  # fmt: skip
def test_a_proven_cause_gates_where_the_whole_loses(estimate: StaticEstimate | None, verdict: Verdict) -> None:
    found = judged(STATIC, OTHER, estimate, causes=1)
    assert (found.verdict, WAVEFRONTS in found.changes[:1]) == (verdict, verdict is WORSE)
    assert (found.reason == f"the machine code got worse: {WAVEFRONTS.what}") == (verdict is WORSE)


def test_causes_and_figures_that_gate_are_named() -> None:
    found = judged(STATIC, SPILLING, SLOWER, causes=1)
    assert found.reason == f"the machine code got worse: {WAVEFRONTS.what}, {SPILLS}"


def test_unchanged_code_is_not_weighed() -> None:
    unchanged = compare_static(KEY, "sm_90", STATIC, STATIC)
    assert with_estimate(unchanged, SLOWER, (WAVEFRONTS,)) is unchanged


@pytest.mark.parametrize(("estimate", "gained", "lost"), [
    ((0.8, 9.0), True, False), ((0.81, 1.0), True, False), ((0.81, 1.01), False, False),
    ((1.02, 1.0), True, False), ((1.02, 1.03), False, True), ((1.03, 0.5), False, True),
    ((1 / 1.02, 1.03), False, True), ((0.97, 9.0), False, False), ((1.0, 1.02), False, False),
])  # fmt: skip
def test_the_bounds_of_a_gain_and_a_loss(estimate: tuple[float, float], gained: bool, lost: bool) -> None:
    assert (gains(StaticEstimate(*estimate)), loses(StaticEstimate(*estimate))) == (gained, lost)


# --- by measured time ----------------------------------------------------------------------------


def one(kind: EvidenceKind, target: str, verdict: Verdict) -> Judgement:
    return Judgement(key=KEY, target=target, kind=kind, verdict=verdict, reason=f"{kind} says so")


STAYING = (
    one("static", "sm_80", WORSE), one("counters", "nvidia-a100", WORSE), one("static", "sm_90", BETTER),
    one("counters", "nvidia-h200", Verdict.NOT_COMPARABLE), *(one(kind, "nvidia-h200", WORSE) for kind in SECONDARY),
)  # fmt: skip
"""Another GPU's, what is no loss, and other costs."""
OF_THIS_GPU = (one("static", "sm_90", WORSE), one("static", "sm_90a", WORSE), one("counters", "nvidia-h200", WORSE))


@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_worse_and_proven_not_slower_is_a_note(verdict: Verdict | None) -> None:
    time = [] if verdict is None else [one("time", "nvidia-h200", verdict)]
    given = (*STAYING, *OF_THIS_GPU, *time)
    found = overridden_by_time(given, [one for one in given if one.kind == "time"], "sm_90")
    if verdict not in (SAME, Verdict.FASTER):
        assert found == given
        return
    assert (found[: len(STAYING)], found[-1:]) == (STAYING, tuple(time))
    weighed_ones = found[len(STAYING) : -1]
    assert [each.verdict for each in weighed_ones] == [SAME] * 3
    said = f"worse, not slower: static says so; its time on nvidia-h200 is {verdict.value if verdict else ''}"
    assert weighed_ones[0].reason == said
