"""What a workload costs beside its time against the record: memory and error exactly, times of the CPU by blocks.

A time of the CPU is a ratio to a canary, fixed work that is done beside it in blocks: other clocks and a busy machine
move both.  Each block votes as paired ones do (``votes``), with the recorded ratio in the baseline's place.  What no
block shows is the process: where its code and data lie moves a ratio of the host by 1 to 1.5 %, one of the compiler by
0.6 % on a quiet machine (docs/results/beside_time.md).  So records have several processes, tolerances are several times
as wide, and a second process confirms what got worse or better: of 300 equal ones four processes differed by 10 %.
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
    "memory": 0.005, "accuracy": 0.1, "host": 0.045, "compile": 0.1,
})  # fmt: skip
"""More by no more than this fraction is accepted.  Of a host time it lies midway between none and a loss of 10 %, with
three times the scatter of processes on either side."""
DETECTED = 1.3
"""Tolerances by which a time of the CPU is not worse where that is proven.  With twice as many, a loss of as much would
pass in every process that has it a little smaller than it is."""
WORDS: Mapping[BesideEvidence, str] = MappingProxyType({
    "memory": "device memory", "accuracy": "error", "host": "host time", "compile": "compile time",
})  # fmt: skip
MOST_BLOCKS = 96
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


def against(r: Sequence[float], record: HostTime) -> list[float]:
    """Log ratios of blocks to the canary as log ratios to the record."""
    recorded = math.log(statistics.median(record.ratios))
    return [one - recorded for one in r]


def incomparable(key: Key, target: str, kind: BesideEvidence, record: HostTime, now: HostTime) -> Judgement | None:
    """Why the two are no ratios of one machine; None if they are.

    Another CPU, Python or driver is the machine's doing and leaves it open; another compiler is another figure.
    """
    if record.cpu != now.cpu:
        verdict, reason = Verdict.INCONCLUSIVE, f"it was recorded on {record.cpu}, and this is {now.cpu}: {ANEW}"
    elif record.made_by != now.made_by:
        verdict = Verdict.NOT_COMPARABLE if kind == "compile" else Verdict.INCONCLUSIVE
        reason = f"it was recorded with {record.made_by}, and this is {now.made_by}: {ANEW}"
    else:
        return None
    return Judgement(key=key, target=target, kind=kind, verdict=verdict, reason=reason)


def judge_host_time(
    key: Key, target: str, kind: BesideEvidence, paired: Paired, time_ns: float, second: Paired | None = None
) -> Judgement:
    """The verdict on blocks against the record, and on those of a ``second`` process where the first saw a change.

    ``time_ns`` is what one run took in the first; what the record's would have taken there follows from the ratio.
    """
    verdict, reason = VERDICTS[paired.decision], ""
    if second is not None and second.decision is not paired.decision:
        was = "better" if paired.decision is Decision.FASTER else "worse"
        verdict = Verdict.NOT_SLOWER if was == "better" else Verdict.INCONCLUSIVE
        reason = f"{was} in the first process, and x{second.ratio:.3f} in a second one"
    elif verdict is Verdict.INCONCLUSIVE:
        reason = "neither worse nor not worse is proven: a quieter machine or a larger --gpuperf-budget decides it"
    elif not verdict.is_pass:
        reason = f"{WORDS[kind]} got {'worse' if verdict is Verdict.WORSE else 'better'}"
    direction = {Verdict.WORSE: "worse", Verdict.BETTER: "better"}.get(verdict, "neutral")
    blocks = f"{paired.blocks}+{second.blocks}" if second is not None else str(paired.blocks)
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
