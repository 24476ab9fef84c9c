"""Evidence that the machine, and not what a test changed, made something slower than its record.

Nothing is excused without any: canary kernels or most unchanged workloads that moved alike, another GPU, driver or
setting of it, rounds that were disturbed.  See docs/explanation/statistics.md, "Code that did not change".
"""

from __future__ import annotations

import math
import statistics

from pytest_gpuperf.judge import env_shift
from pytest_gpuperf.judge.canary_shift import CANARY_SHIFT
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.judge.recording_choice import UNKNOWN_CAUSES, Recording
from pytest_gpuperf.judge.time_case import TimeCase
from pytest_gpuperf.judge.two_sample import Spread
from pytest_gpuperf.model.verdict import Verdict

AMPLIFIED = 3.0
"""A workload may move by so many times as much as a canary, or as its neighbours do, by the same cause."""
OTHERS = 5
"""Unchanged workloads of the run besides this one from which most can be told."""
OWN_CLOCK_SHARE = 0.5
"""Of the fall of the SM clock that a canary has to show, for the fall not to be the workload's own doing."""


def slower_without_change(case: TimeCase, recording: Recording, spread: Spread, policy: Policy) -> tuple[Verdict, str]:
    """ENV-SHIFT with the evidence for it, or UNEXPLAINED: the same code, proven slower than its record.

    UNEXPLAINED takes proof, at ``policy.alpha``, of more than the tolerance and more than canaries at rest leave open.
    """
    evidence = _evidence(case, recording, spread)
    if evidence:
        return Verdict.ENV_SHIFT, evidence
    left_open = AMPLIFIED * max(CANARY_SHIFT, recording.canary_slowdown)
    if not spread.exceeds(max(math.log1p(policy.delta), left_open), policy.alpha):
        return Verdict.ENV_SHIFT, f"{UNKNOWN_CAUSES}: canary kernels leave up to {left_open:.1%} open"
    moved = ", ".join(f"{name} {env_shift.percent(by)}" for name, by in sorted((recording.canary_shifts or {}).items()))
    return Verdict.UNEXPLAINED, (
        f"nothing says that the machine did it (canary kernels: {moved}), so look at what is no code: the contents of "
        f"its inputs, __constant__ memory, what it reads through pointers; or accept it with "
        f"pytest --update-baselines=all"
    )


def slower_by_the_machine(case: TimeCase, recording: Recording, spread: Spread, policy: Policy) -> tuple[Verdict, str]:
    """What becomes of unpaired rounds that are SLOWER than their record: still that, with no words, or not proven.

    On a machine that changed no second process can help, for it shares the record.
    """
    moved, shift = env_shift.percent(spread.difference), recording.canary_slowdown
    alike = shift > CANARY_SHIFT and not spread.exceeds(math.log1p(policy.delta) + AMPLIFIED * shift, policy.alpha)
    if recording.changes:
        causes = recording.possible_causes
        if alike or recording.canary_shifts is None:
            return Verdict.ENV_SHIFT, f"{moved} against the record: {causes}"
        return Verdict.INCONCLUSIVE, (
            f"{moved} against a record of another machine ({causes}), and canary kernels do not explain it: "
            f"record anew on this one with pytest --update-baselines=all, from the commit of the record"
        )
    if env_shift.only_clocks_changed(recording.rounds, case.rounds, policy.delta):
        return _at_a_lower_clock(case, recording, spread)
    if alike:
        return Verdict.ENV_SHIFT, f"{moved} against the record: {recording.possible_causes}"
    return Verdict.SLOWER, ""


def _evidence(case: TimeCase, recording: Recording, spread: Spread) -> str:
    """What shows that the machine changed, in words; empty if nothing does."""
    explained = recording.canary_slowdown > CANARY_SHIFT and (
        spread.difference <= AMPLIFIED * recording.canary_slowdown
    )
    if not recording.same_gpu or recording.changes or explained:
        return recording.possible_causes
    others = case.unchanged_shifts
    middle = statistics.median(others) if len(others) >= OTHERS else 0.0
    if middle > CANARY_SHIFT and spread.difference <= AMPLIFIED * middle:
        return (
            f"{UNKNOWN_CAUSES} ({len(others)} other unchanged workloads moved by {env_shift.percent(middle)}, median)"
        )
    if case.disturbances and spread.difference <= AMPLIFIED * case.disturbed_by:
        return f"{UNKNOWN_CAUSES}: its rounds were disturbed"
    if recording.canary_shifts is None:
        return f"{UNKNOWN_CAUSES}: there are no canary kernels on record that could tell"
    return ""


def _at_a_lower_clock(case: TimeCase, recording: Recording, spread: Spread) -> tuple[Verdict, str]:
    """Whose doing it is that the clock fell: the machine's if canaries are slower too, else the workload's own."""
    in_cycles = env_shift.cycles_ratio(recording.rounds, case.rounds)
    fell = spread.difference - math.log(in_cycles or 1.0)
    moved = env_shift.percent(spread.difference)
    words = f"{moved} in time and within the tolerance in clock cycles: the SM clock differs from the record"
    if recording.canary_shifts is None:
        return Verdict.INCONCLUSIVE, f"{words}, and no canary kernels on record could tell whether it is the machine's"
    if recording.canary_slowdown >= OWN_CLOCK_SHARE * fell:
        return Verdict.ENV_SHIFT, f"{words}, and canary kernels moved, too"
    return Verdict.SLOWER, "its cycles are within the tolerance, and the clock is lower by its own doing: canaries rest"
