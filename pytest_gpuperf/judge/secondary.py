"""Verdicts on what a workload costs beside its time on the GPU: memory and error exactly, host time by blocks.

A host time is a ratio to a reference kernel's place on the CPU: fixed work of the plugin's own, done in blocks with it,
so that other clocks and a busy machine move both.  The recorded ratio takes the baseline's place.  What a process has
for life (its allocator, its CPU, where its code and data lie) is in all of its blocks, and has moved the ratio of equal
work by 27 % on an H200's host.  So the usual tolerance lies above that, and a loss is confirmed in a second process.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pytest_gpuperf.formatting import duration, percent
from pytest_gpuperf.judge.decision import CONFIRMING_ALPHA, Comparison, Decision
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.model.time_record import HostTime
from pytest_gpuperf.model.verdict import UNDECIDED, BesideEvidence, Change, Judgement, Verdict

TOLERANCES: Mapping[BesideEvidence, float] = MappingProxyType({"memory": 0.005, "accuracy": 0.1, "host": 0.5})
"""More by no more than this fraction is accepted."""
DETECTED = 1.3
"""Tolerances by which a host time is not worse where that is proven."""
WORDS: Mapping[BesideEvidence, str] = MappingProxyType({
    "memory": "device memory", "accuracy": "error", "host": "host time",
})  # fmt: skip
RECORD = "record it with pytest --update-baselines=new"
ANEW = "record it on this machine with pytest --update-baselines=all"


def new(key: Key, target: str, kind: BesideEvidence) -> Judgement:
    """Of a figure without a baseline."""
    reason = f"no {WORDS[kind]} on record: {RECORD}"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NEW, reason=reason)


def not_asked_for(key: Key, target: str, kind: BesideEvidence) -> Judgement:
    """Of a recorded figure that the test does not ask for."""
    asked = "accuracy=" if kind == "accuracy" else f"measure=({kind!r},)"
    reason = f"its {WORDS[kind]} is on record and the test does not ask for it: give {asked} again, or record it anew"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, reason=reason)


def judge_exact(
    key: Key, target: str, kind: BesideEvidence, before: float, after: float, tolerance: float | None
) -> Judgement:
    """Device memory in bytes, or an error, against that on record."""
    band = (TOLERANCES[kind] if tolerance is None else tolerance) * before
    way: Literal["worse", "better", "neutral"] = (
        "worse" if after > before + band else "better" if after < before - band else "neutral"
    )
    shown = [str(int(one)) if kind == "memory" else f"{one:.4g}" for one in (before, after)]
    change = Change(
        what=WORDS[kind], before=shown[0], after=shown[1], direction=way, unit="bytes" if kind == "memory" else "",
        note=percent(after / before - 1) if before and after != before else "",
    )  # fmt: skip
    verdict = {"worse": Verdict.WORSE, "better": Verdict.BETTER}.get(way, Verdict.SAME)
    reason = "" if verdict is Verdict.SAME else f"{WORDS[kind]} got {way}"
    return Judgement(key=key, target=target, kind=kind, verdict=verdict, reason=reason, changes=(change,))


# --- host time -----------------------------------------------------------------------------------


def limits_of(tolerance: float | None) -> Limits:
    """Of a host time."""
    delta = TOLERANCES["host"] if tolerance is None else tolerance
    return Limits(delta, DETECTED * delta)


def recorded_log(record: HostTime) -> float:
    """Log of the recorded ratio, which stands for the baseline in each block."""
    return math.log(statistics.median(record.ratios))


def incomparable(key: Key, target: str, record: HostTime, now: HostTime) -> Judgement | None:
    """INCONCLUSIVE where another CPU, Python or driver took the record; None if they are the same."""
    was, is_ = (record.cpu, now.cpu) if record.cpu != now.cpu else (record.made_by, now.made_by)
    if was == is_:
        return None
    reason = f"it was recorded on {was}, and this is {is_}: {ANEW}"
    return Judgement(key=key, target=target, kind="host", verdict=Verdict.INCONCLUSIVE, reason=reason)


def judge_host_time(
    key: Key, target: str, limits: Limits, alpha: float, first: Comparison, second: Comparison | None = None
) -> Judgement:
    """The verdict on the blocks of one process, whose loss or gain is final with those of a ``second``.

    ``time_ns`` of a comparison is what one run took there.
    """
    decision = first.decision(limits, alpha)
    confirmed = second is None or second.decision(limits, CONFIRMING_ALPHA) is decision
    verdict, reason, direction = Verdict.SAME, "", "neutral"
    if decision is None:
        verdict = Verdict.INCONCLUSIVE
        reason = f"{UNDECIDED}: a quieter machine or a larger --gpuperf-budget decides it"
    elif decision is Decision.FASTER and confirmed:
        verdict, reason, direction = Verdict.BETTER, "host time got better", "better"
    elif decision is Decision.SLOWER and confirmed:
        verdict, reason, direction = Verdict.WORSE, "host time got worse", "worse"
    elif decision is Decision.SLOWER and second is not None:
        verdict, reason = Verdict.INCONCLUSIVE, f"worse in 1 process, and x{second.ratio:.3f} in the next"
    blocks = "+".join(str(len(one.r)) for one in (first, second) if one is not None)
    change = Change(
        what=WORDS["host"], before=duration(first.time_ns / first.ratio), after=duration(first.time_ns),
        direction=direction,  # type: ignore[arg-type]
        note=f"{percent(first.ratio - 1)} beside fixed work, {blocks} blocks",
    )  # fmt: skip
    return Judgement(key=key, target=target, kind="host", verdict=verdict, reason=reason, changes=(change,))
