"""What a workload costs beside its time against the record: memory and error exactly, times of the CPU by blocks.

A time of the CPU is a ratio to a canary, fixed work that is done beside it in blocks: other clocks and a busy machine
move both.  Each block votes as paired ones do (``votes``), with the recorded ratio in the baseline's place.  What no
block shows is the process: where its code and data lie moves a ratio by 1 to 1.5 % on a quiet machine
(docs/results/beside_time.md).  So records have several processes, tolerances are several times
as wide, and a second process confirms what got worse or better.  What is worse is confirmed by as many as it takes to
tell the mean of all from the record by more than processes scatter (``told_from_the_record``).  What is better has to
take less time by the clock, too: where the canary alone is slow in a process, equal work seems better there.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from pytest_gpuperf.formatting import duration, percent
from pytest_gpuperf.judge.block_decision import Paired, judge_blocks
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.beside_figures import HostTime
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.verdict import BesideEvidence, Change, Judgement, Verdict

TOLERANCES: Mapping[BesideEvidence, float] = MappingProxyType({
    "memory": 0.005, "accuracy": 0.1, "host": 0.045,
})  # fmt: skip
"""More by no more than this fraction is accepted.  Of a host time it lies midway between none and a loss of 10 %, with
three times the scatter of processes on either side."""
DETECTED = 1.3
"""Tolerances by which a time of the CPU is not worse where that is proven.  With twice as many, a loss of as much would
pass in every process that has it a little smaller than it is."""
WORDS: Mapping[BesideEvidence, str] = MappingProxyType({
    "memory": "device memory", "accuracy": "error", "host": "host time",
})  # fmt: skip
MOST_BLOCKS = 96
SCATTER = 0.02
"""Standard deviation of the log ratios of processes that do equal work (docs/results/beside_time.md: 1.2 to 2.5 %)."""
ERRORS = 3.1
"""Standard errors that the mean of processes has to be above the record: one of 1,000 equal ones is, by luck."""
MOST_PROCESSES = 5
"""Worse in each of so many is proof, however uncertain the record is."""
_OF_MEDIAN = math.pi / 2
"""The variance of a median is so many times that of a mean."""
_NTH = ("second", "third", "fourth", "fifth")
_OF_MAD = 1.4826
"""A standard deviation is so many times the median absolute deviation, of normal values."""
RECORD = "record it with pytest --update-baselines=new"
ANEW = "record it on this machine with pytest --update-baselines=all"
VERDICTS: Mapping[Decision, Verdict] = MappingProxyType({
    Decision.SLOWER: Verdict.WORSE, Decision.FASTER: Verdict.BETTER, Decision.SAME: Verdict.SAME,
    Decision.NOT_SLOWER: Verdict.NOT_SLOWER, Decision.INCONCLUSIVE: Verdict.INCONCLUSIVE,
})  # fmt: skip


def new(key: Key, target: str, kind: BesideEvidence) -> Judgement:
    """Of a figure that is not on record."""
    reason = f"no {WORDS[kind]} on record: {RECORD}"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NEW, reason=reason)


def not_asked_for(key: Key, target: str, kind: BesideEvidence) -> Judgement:
    """Of a figure on record that the test does not ask for."""
    asked = "accuracy=" if kind == "accuracy" else f"measure=({kind!r},)"
    reason = (
        f"its {WORDS[kind]} is on record and the test does not ask for it: give {asked} again, or take it out of the "
        f"record's beside"
    )
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, reason=reason)


def judge_exact(
    key: Key, target: str, kind: BesideEvidence, before: float, after: float, tolerance: float | None
) -> Judgement:
    """Device memory in bytes, or an error, against that on record."""
    band = (TOLERANCES[kind] if tolerance is None else tolerance) * before
    verdict, direction = Verdict.SAME, "neutral"
    if after > before + band:
        verdict, direction = Verdict.WORSE, "worse"
    elif after < before - band:
        verdict, direction = Verdict.BETTER, "better"
    change = Change(
        what=WORDS[kind], before=_exact(kind, before), after=_exact(kind, after), direction=direction,  # type: ignore[arg-type]
        unit="bytes" if kind == "memory" else "", note=_more(after / before - 1) if before and after != before else "",
    )  # fmt: skip
    reason = "" if verdict is Verdict.SAME else f"{WORDS[kind]} got {direction}"
    return Judgement(key=key, target=target, kind=kind, verdict=verdict, reason=reason, changes=(change,))


def _exact(kind: BesideEvidence, value: float) -> float | str:
    return str(int(value)) if kind == "memory" else f"{value:.4g}"


def _more(fraction: float) -> str:
    return f"{fraction * 100:+.2f} %" if abs(fraction) < 0.1 else percent(fraction)


def policy_of(kind: BesideEvidence, tolerance: float | None, alpha: float, alpha_faster: float) -> Policy:
    """Of a time of the CPU."""
    delta = TOLERANCES[kind] if tolerance is None else tolerance
    return Policy(
        delta=delta, epsilon=DETECTED * delta, alpha=alpha, alpha_faster=alpha_faster, blocks_max=MOST_BLOCKS
    )  # fmt: skip


def told_from_the_record(ratios: Sequence[float], record: HostTime) -> bool:
    """Whether the mean of these processes' ratios to the record is above it by more than processes scatter.

    The record is the median of its own processes, and the scatter is theirs where that is more than usual.
    """
    recorded = [math.log(one) for one in record.ratios]
    middle = statistics.median(recorded)
    scatter = max(SCATTER, _OF_MAD * statistics.median(abs(one - middle) for one in recorded))
    error = scatter * math.sqrt(1 / len(ratios) + _OF_MEDIAN / len(recorded))
    return len(ratios) >= MOST_PROCESSES or statistics.fmean(map(math.log, ratios)) > ERRORS * error


def least_time_ns(record: HostTime, policy: Policy) -> float:
    """What no run of the record's takes by the clock, on a machine that is as it was: less by the tolerance."""
    return record.time_ns / (1 + policy.delta)


def against(r: Sequence[float], record: HostTime) -> list[float]:
    """Log ratios of blocks to the canary as log ratios to the record."""
    recorded = math.log(statistics.median(record.ratios))
    return [one - recorded for one in r]


def incomparable(key: Key, target: str, kind: BesideEvidence, record: HostTime, now: HostTime) -> Judgement | None:
    """Why the two are no ratios of one machine; None if they are.

    Another CPU, Python or driver is the machine's doing and leaves it open.
    """
    if record.cpu != now.cpu:
        reason = f"it was recorded on {record.cpu}, and this is {now.cpu}: {ANEW}"
    elif record.made_by != now.made_by:
        reason = f"it was recorded with {record.made_by}, and this is {now.made_by}: {ANEW}"
    else:
        return None
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.INCONCLUSIVE, reason=reason)


def judge_host_time(
    key: Key, target: str, kind: BesideEvidence, paired: Paired, time_ns: float, least_ns: float,
    later: Sequence[Paired] = (),
) -> Judgement:  # fmt: skip
    """The verdict on blocks against the record, and on those of ``later`` processes where the first saw a change.

    ``time_ns`` is what one run took in the first; what the record's would have taken there follows from the ratio.
    What is better took less than ``least_ns``, too (``least_time_ns``).
    """
    verdict, reason = VERDICTS[paired.decision], ""
    if verdict is Verdict.BETTER and time_ns >= least_ns:
        verdict = Verdict.NOT_SLOWER
        reason = f"better beside the canary and not by the clock, where it would take less than {duration(least_ns)}"
    elif later and later[-1].decision is not paired.decision:
        was = "better" if paired.decision is Decision.FASTER else "worse"
        verdict = Verdict.NOT_SLOWER if was == "better" else Verdict.INCONCLUSIVE
        those = "the first process" if len(later) == 1 else f"{len(later)} processes"
        reason = f"{was} in {those}, and x{later[-1].ratio:.3f} in a {_NTH[len(later) - 1]} one"
    elif verdict is Verdict.INCONCLUSIVE:
        reason = "neither worse nor not worse is proven: a quieter machine or a larger --gpuperf-budget decides it"
    elif not verdict.is_pass:
        reason = f"{WORDS[kind]} got {'worse' if verdict is Verdict.WORSE else 'better'}"
    direction = {Verdict.WORSE: "worse", Verdict.BETTER: "better"}.get(verdict, "neutral")
    blocks = "+".join(str(one.blocks) for one in (paired, *later))
    change = Change(
        what=WORDS[kind], before=duration(time_ns / paired.ratio), after=duration(time_ns),
        direction=direction, note=f"{percent(paired.ratio - 1)} beside the canary, {blocks} blocks",  # type: ignore[arg-type]
    )  # fmt: skip
    return Judgement(key=key, target=target, kind=kind, verdict=verdict, reason=reason, changes=(change,))


def decided(r: Sequence[float], record: HostTime, policy: Policy, *, stopped: bool = False) -> Paired:
    """What log ratios of blocks to the canary say against the record."""
    return judge_blocks(against(r, record), policy, stopped=stopped)


def unheard_of(first: Judgement, why: str) -> Judgement:
    """Of what got worse or better in one process, where no second one could say anything."""
    better = first.verdict is Verdict.BETTER
    reason = f"{'better' if better else 'worse'} in one process, and no second one could say: {why}"
    return msgspec.structs.replace(
        first, verdict=Verdict.NOT_SLOWER if better else Verdict.SUSPECT, reason=reason
    )  # fmt: skip
