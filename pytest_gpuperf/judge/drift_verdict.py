"""How far a workload is from its anchor: the record it had when it was last accepted on purpose.  Pure.

Steps that each pass add up, and so do steps that were each accepted.  What is beyond the tolerance is remarked on, what
is beyond twice the tolerance is SLOWER until the anchor is moved on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.formatting import drift_words
from pytest_gpuperf.judge.block_decision import Paired
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.judge.paired_verdict import confirmed
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.time_case import TimeCase
from pytest_gpuperf.model.evidence import Anchor
from pytest_gpuperf.model.verdict import RED, Drift, Judgement, PairSlot, TimeFigures, Verdict


def drift_of(anchor: Anchor, tolerance: float, ratio: float | None, *, proven: bool) -> Drift:
    """The drift that a ratio to the anchor stands for."""
    return Drift(date=anchor.date, steps=anchor.steps, tolerance=tolerance, ratio=ratio, proven=proven)


def drift_by_steps(anchor: Anchor, tolerance: float, step: Judgement) -> Drift:
    """The drift of what cannot be paired with its anchor: that on record times today's against the record."""
    today = step.time.ratio if step.time is not None else None
    ratio = None if anchor.ratio is None or today is None else anchor.ratio * today
    return drift_of(anchor, tolerance, ratio, proven=anchor.proven and step.verdict is not Verdict.FASTER)


def judge_recorded_drift(case: TimeCase, drift: Drift, *, changed: bool) -> Judgement | None:
    """SLOWER for a drift that earlier runs have proven; None where it is not beyond twice the tolerance."""
    if not drift.exceeds(RED):
        return None
    figures = TimeFigures(ratio=drift.ratio, tolerance=RED * drift.tolerance, method="identity")
    reason = f"{drift_words(drift, changed=changed)}, as was proven when they were accepted"
    return Judgement(key=case.key, target=case.target, kind="time", verdict=Verdict.SLOWER, reason=reason,
                     time=figures, against="anchor")  # fmt: skip


def judge_paired_drift(
    case: TimeCase, anchor: Anchor, policy: Policy, first: Paired, second: Paired | None = None, *,
    seeds: Sequence[int] = (), notes: Sequence[str] = (), pair_slot: PairSlot = "short",
) -> tuple[Drift, Judgement | None]:  # fmt: skip
    """The drift by paired blocks against the anchor's machine code, and its verdict beyond twice the tolerance.

    ``policy`` asks for a proof of more than the tolerance; how much more is the ratio's to say.  ``second`` are the
    blocks of a fresh process, judged under ``policy.confirming()``.
    """
    ratio = first.ratio if first.blocks else None
    drift = drift_of(anchor, policy.delta, ratio, proven=first.decision is Decision.SLOWER)
    if not drift.exceeds(RED):
        return drift, None
    verdict, proof = confirmed(policy, second, ", and not in a second")
    changed = case.baseline is None or not case.identity.same_execution(case.baseline.identity)
    after = mean_time_ns(case.rounds) if case.rounds else None
    figures = TimeFigures(
        before_ns=after / first.ratio if after is not None else None, after_ns=after, ratio=ratio,
        interval=first.interval, tolerance=RED * policy.delta, method="paired", pair_slot=pair_slot,
        blocks=first.blocks, confirm_blocks=second.blocks if second else 0, log_e=first.evidence.log_e_slower,
        log_e_needed=-math.log(policy.alpha), seeds=tuple(seeds),
    )  # fmt: skip
    return drift, Judgement(
        key=case.key, target=case.target, kind="time", verdict=verdict,
        reason=f"{drift_words(drift, changed=changed)}; {proof}", time=figures, notes=tuple(notes), against="anchor",
    )  # fmt: skip
