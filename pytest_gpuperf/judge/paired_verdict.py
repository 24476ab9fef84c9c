"""From decisions on paired blocks to a verdict on a workload.

A slower candidate has to be slower in two processes: where a cubin was placed cannot be randomised away inside one.
See docs/explanation/statistics.md, "The second process".
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec
import numpy as np

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge import env_shift
from pytest_gpuperf.judge.block_decision import Paired, log_e_path
from pytest_gpuperf.judge.comparability import explain, other_arguments, same_work
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.judge.machine_evidence import slower_without_change
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.judge.process_pairs import disproven_by_pairs
from pytest_gpuperf.judge.recording_choice import Recording, choose_recording
from pytest_gpuperf.judge.tail import SHARE
from pytest_gpuperf.judge.time_case import TimeCase, TimeStep
from pytest_gpuperf.judge.two_sample import Spread, compare_rounds, process_spread
from pytest_gpuperf.judge.unpaired import LEAST_OMEGA, OTHER_GPU_OMEGA
from pytest_gpuperf.model.evidence import TimeRecord
from pytest_gpuperf.model.verdict import UNDECIDED, Judgement, PairSlot, TimeFigures, Verdict


def judge_pairs(
    case: TimeCase,
    policy: Policy,
    first: Paired,
    second: Paired | None = None,
    *,
    seeds: Sequence[int] = (),
    notes: Sequence[str] = (),
    pair_slot: PairSlot = "short",
    slow_launches: str = "",
) -> TimeStep:
    """The verdict after paired blocks of one process, or of two.

    ``second`` are the blocks of a fresh process, judged under ``policy.confirming()``.  What is slower than the record
    and not when paired is the environment's doing.  ``slow_launches`` says what a tail consists of.  Raises
    ``ValueError`` if the case has no baseline to pair with.
    """
    if case.baseline is None:
        raise ValueError(f"{case.key}: there is no baseline that blocks could be paired with")
    work = same_work(case.baseline, case.identity, case.timer, case.cache)
    recording = choose_recording(case.baseline, case.sessions, case.session)
    of_recording = () if case.of_revision else recording.notes
    spread = None if work.measured_otherwise else _against_the_record(case, recording)
    verdict, reason = _verdict(policy, first, second)
    by_process = not case.identity.code and not case.of_revision
    if verdict is Verdict.FASTER and by_process and _may_be_luck(policy, first, case.baseline):
        verdict = Verdict.NOT_SLOWER
        reason += " in this pair of processes, but not by more than two that run the same may be apart"
    if first.by_tail:
        reason = f"{reason}: {_tail(first, slow_launches)}"
    if verdict in (Verdict.SAME, Verdict.NOT_SLOWER) and spread is not None and _moved(spread, first, policy):
        verdict, why = slower_without_change(case, recording, spread, policy)
        reason = f"{env_shift.percent(spread.difference)} against the record and {reason} when paired: {why}"
    cause = explain(work.cause, case.baseline.identity, case.identity)
    if other_arguments(case.baseline.identity, case.identity):
        cause += "; the baseline ran with its own"
    judgement = Judgement(
        key=case.key, target=case.target, kind="time", verdict=verdict, reason=f"{reason}; {cause}",
        time=_figures(policy, case, first, second, spread, seeds, pair_slot),
        notes=tuple(dict.fromkeys(
            (*case.disturbances, *case.remarks, *of_recording, *work.measured_otherwise, *notes)
        )),
    )  # fmt: skip
    return TimeStep(judgement, confirmation_wanted=verdict is Verdict.SLOWER and second is None)


def unconfirmed(suspected: Judgement, why: str) -> Judgement:
    """A workload that was slower in one process, and that a second one did not find slower."""
    reason = f"suspected slower, not confirmed: {why}; {suspected.reason}"
    return msgspec.structs.replace(suspected, verdict=Verdict.INCONCLUSIVE, reason=reason)


def slower_here_alone(judgement: Judgement, ratios: Sequence[float], epsilon: float) -> Judgement:
    """A callable that was slower in the gating process, and is not where both sides have fresh ones of one history."""
    found, pairs = math.exp(statistics.fmean(map(math.log, ratios))), numbered(len(ratios), "pair")
    reason = (
        f"proven to be less than {env_shift.amount(epsilon)} slower by {pairs} of fresh processes (x{found:.3f}); "
        f"slower in this one, which had the GPU first: where its memory lies decides"
    )
    return msgspec.structs.replace(judgement, verdict=Verdict.NOT_SLOWER, reason=reason)


def unheard(suspected: Judgement, why: str) -> Judgement:
    """A workload that was slower in one process, where no second one could say anything of it.

    The first process has proven it at its whole share of the run's error rate, so failing it keeps the promise too.
    """
    reason = f"suspected slower, and no second process could say: {why}; {suspected.reason}"
    return msgspec.structs.replace(suspected, verdict=Verdict.SUSPECT, reason=reason)


def _tail(first: Paired, slow_launches: str) -> str:
    """``the mean is x1.80 while the midmean is x1.001: 21 % of its samples take 5 times as long as most``"""
    words = f"the mean is x{first.mean_ratio:.3g} while the midmean is x{first.ratio:.4g}"
    return f"{words}: {slow_launches}" if slow_launches else words


def _against_the_record(case: TimeCase, recording: Recording) -> Spread | None:
    if not case.rounds or case.of_revision:
        return None
    omega = LEAST_OMEGA if recording.same_gpu else OTHER_GPU_OMEGA
    return compare_rounds(recording.rounds, case.rounds, omega)


def _moved(spread: Spread, first: Paired, policy: Policy) -> bool:
    """Whether today's time is above the record by more than the tolerance, and more than the pairs explain."""
    return spread.exceeds(math.log1p(policy.delta) + max(0.0, math.log(first.ratio)), env_shift.ALPHA)


def _verdict(policy: Policy, first: Paired, second: Paired | None) -> tuple[Verdict, str]:
    if first.decision is Decision.SLOWER:
        return _confirmed(policy, first, second)
    if first.decision is Decision.FASTER:
        return Verdict.FASTER, f"proven to be more than {env_shift.amount(policy.delta)} faster"
    if first.decision in (Decision.SAME, Decision.NOT_SLOWER):
        same = first.decision is Decision.SAME
        words = f"proven to be less than {env_shift.amount(policy.epsilon)} slower{' or faster' if same else ''}"
        return (Verdict.SAME if same else Verdict.NOT_SLOWER), words
    return Verdict.INCONCLUSIVE, f"{UNDECIDED} after {first.blocks} block{'s' if first.blocks != 1 else ''}"


def _may_be_luck(policy: Policy, first: Paired, baseline: TimeRecord) -> bool:
    """A pair of processes is one observation: its gain has to be above what processes of the record are apart."""
    return not disproven_by_pairs([first.ratio], 1 / (1 + policy.delta) - 1, process_spread(baseline.rounds))


def _confirmed(policy: Policy, first: Paired, second: Paired | None) -> tuple[Verdict, str]:
    if second is not None and all(policy.delta < one.ratio - 1 < policy.epsilon for one in (first, second)):
        otherwise = f" and less than {env_shift.amount(policy.epsilon)} in a second: it lies between the two"
    else:
        otherwise = " and not in a second: where it is placed decides"
    return confirmed(policy, second, otherwise)


def confirmed(policy: Policy, second: Paired | None, otherwise: str) -> tuple[Verdict, str]:
    """What a second process makes of SLOWER in one; ``otherwise`` are the words where it decides against that."""
    slower = env_shift.proven_slower(policy.delta)
    if second is None:
        return Verdict.SLOWER, f"{slower} in one process, a second has to confirm it"
    if second.decision is Decision.SLOWER:
        return Verdict.SLOWER, f"{slower}, in two processes"
    if second.decision in (Decision.INCONCLUSIVE, Decision.CONTINUE):
        leans = not second.blocks or second.evidence.log_e_slower > 0  # it has not said otherwise
        verdict = Verdict.SUSPECT if leans else Verdict.INCONCLUSIVE
        return verdict, f"{slower} in one process, undecided in a second after {numbered(second.blocks, 'block')}"
    return Verdict.INCONCLUSIVE, f"{slower} in one process{otherwise}"


def _figures(
    policy: Policy, case: TimeCase, first: Paired, second: Paired | None, spread: Spread | None,
    seeds: Sequence[int], pair_slot: PairSlot,
) -> TimeFigures:  # fmt: skip
    ratio = first.ratio if first.blocks else None
    log_e, needed = first.evidence.log_e_slower, first.log_e_needed
    if first.by_tail and first.tail_log_e is not None:
        log_e, needed = first.tail_log_e, -math.log(policy.alpha * SHARE)
    after = mean_time_ns(case.rounds) if case.rounds else None
    ratios, path = _blocks(first, policy)
    return TimeFigures(
        before_ns=after / ratio if after is not None and ratio is not None else None, after_ns=after, ratio=ratio,
        interval=first.interval, level=0.95, tolerance=policy.delta, method="paired", pair_slot=pair_slot,
        blocks=first.blocks, confirm_blocks=second.blocks if second else 0, log_e=log_e,
        log_e_needed=needed, mean_ratio=first.mean_ratio, seeds=tuple(seeds), block_ratios=ratios, log_e_path=path,
        record_ratio=math.exp(spread.difference) if spread is not None else None,
    )  # fmt: skip


def _blocks(first: Paired, policy: Policy) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ratio and e-value of each block, for who draws them: six and four digits."""
    if first.log_ratios is None or not first.blocks:
        return (), ()
    ratios = np.exp(np.median(first.log_ratios, axis=1))
    path = log_e_path(first.log_ratios, policy)
    return tuple(float(f"{one:.6g}") for one in ratios), tuple(float(f"{one:.4g}") for one in path)
