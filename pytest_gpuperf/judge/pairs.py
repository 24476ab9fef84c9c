"""From decisions on paired blocks to a verdict on a workload.

A slower candidate has to be slower in two processes: where a cubin was placed in one process cannot be
randomised away inside it.  Design notes: statistics.md 3.5 and 3.8.
"""

from __future__ import annotations

import math

from pytest_gpuperf.judge import shift
from pytest_gpuperf.judge.case import TimeCase, TimeStep
from pytest_gpuperf.judge.identity import same_work
from pytest_gpuperf.judge.paired import Paired
from pytest_gpuperf.judge.votes import PairedDecision, PairedPolicy
from pytest_gpuperf.verdict import Judgement, TimeFigures, Verdict


def judge_pairs(
    case: TimeCase,
    policy: PairedPolicy,
    first: Paired,
    second: Paired | None = None,
    *,
    unpaired: TimeStep | None = None,
) -> TimeStep:
    """The verdict after paired blocks of one process, or of two.

    ``second`` are the blocks of a fresh process, judged under ``policy.confirming()``; ``unpaired`` is what
    stored rounds said before, so that a slower record without a slower pair is known as the environment's.
    Raises ``ValueError`` if the case has no baseline to pair with.
    """
    if case.baseline is None:
        raise ValueError(f"{case.key}: there is no baseline that blocks could be paired with")
    verdict, reason = _verdict(policy, first, second, unpaired)
    work = same_work(case.baseline, case.identity, case.timer, case.cache)
    judgement = Judgement(
        key=case.key, target=case.target, kind="time", verdict=verdict, reason=f"{reason}; {work.reason}",
        time=_figures(policy, first, second, unpaired), notes=tuple(case.disturbances),
    )  # fmt: skip
    return TimeStep(judgement, confirmation_wanted=verdict is Verdict.SLOWER and second is None)


def _verdict(
    policy: PairedPolicy, first: Paired, second: Paired | None, unpaired: TimeStep | None
) -> tuple[Verdict, str]:
    if first.decision is PairedDecision.SLOWER:
        return _confirmed(policy, second)
    if first.decision is PairedDecision.FASTER:
        return Verdict.FASTER, f"proven to be more than {shift.amount(policy.delta)} faster"
    if first.decision in (PairedDecision.SAME, PairedDecision.NOT_SLOWER):
        if unpaired is not None and unpaired.judgement.verdict is Verdict.SLOWER:
            return Verdict.ENV_SHIFT, "slower than the record and not slower when paired: the machine changed"
        same = first.decision is PairedDecision.SAME
        words = f"proven to be less than {shift.amount(policy.epsilon)} slower{' or faster' if same else ''}"
        return (Verdict.SAME if same else Verdict.NOT_SLOWER), words
    return Verdict.INCONCLUSIVE, f"neither slower nor not slower is proven after {first.blocks} blocks"


def _confirmed(policy: PairedPolicy, second: Paired | None) -> tuple[Verdict, str]:
    slower = f"proven to be more than {shift.amount(policy.delta)} slower"
    if second is None:
        return Verdict.SLOWER, f"{slower} in one process, a second has to confirm it"
    if second.decision is PairedDecision.SLOWER:
        return Verdict.SLOWER, f"{slower}, in two processes"
    if second.decision in (PairedDecision.INCONCLUSIVE, PairedDecision.CONTINUE):
        return Verdict.INCONCLUSIVE, f"{slower} in one process, undecided in a second"
    return Verdict.INCONCLUSIVE, f"{slower} in one process and not in a second: where it is placed decides"


def _figures(policy: PairedPolicy, first: Paired, second: Paired | None, unpaired: TimeStep | None) -> TimeFigures:
    stored = unpaired.judgement.time if unpaired is not None else None
    return TimeFigures(
        before_ns=stored.before_ns if stored else None, after_ns=stored.after_ns if stored else None,
        ratio=first.ratio if first.blocks else None, interval=first.interval, level=0.95, tolerance=policy.delta,
        method="paired", blocks=first.blocks, confirm_blocks=second.blocks if second else 0,
        log_e=first.evidence.log_e_slower, log_e_needed=-math.log(policy.alpha),
    )  # fmt: skip
