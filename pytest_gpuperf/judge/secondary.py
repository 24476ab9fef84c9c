"""Verdicts on secondary metrics: memory, error and host time against the baseline.

A host time is a ratio to fixed work of the plugin's own, done next to it, so that other clocks and a busy machine move
both.  What a process has for life (its allocator, its CPU, where its code and data lie) is in all that it measures, and
has moved the ratio of equal work by 27 % on an H200's host.  So the usual tolerance lies above that, and a loss is
confirmed in a second process.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from pytest_gpuperf.formatting import duration, percent
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import HostTime
from pytest_gpuperf.model.verdict import Change, Judgement, SecondaryKind, Verdict

TOLERANCES: Mapping[SecondaryKind, float] = MappingProxyType({"memory": 0.005, "accuracy": 0.1, "host": 0.5})
"""More by no more than this fraction is accepted."""
NAMES: Mapping[SecondaryKind, str] = MappingProxyType(
    {"memory": "device memory", "accuracy": "error", "host": "host time"}
)
RECORD = "record it with pytest --update-baselines=new"
ANEW = "record it on this machine with pytest --update-baselines=all"


def new(key: Key, target: str, kind: SecondaryKind) -> Judgement:
    """Of a figure without a baseline."""
    reason = f"no recorded {NAMES[kind]}: {RECORD}"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NEW, reason=reason)


def not_asked_for(key: Key, target: str, kind: SecondaryKind) -> Judgement:
    """Of a recorded figure that the test does not ask for."""
    asked = "accuracy=" if kind == "accuracy" else f"measure=({kind!r},)"
    reason = f"its {NAMES[kind]} is recorded, but the test does not measure it: pass {asked} again, or record it again"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, reason=reason)


def judge_exact(
    key: Key, target: str, kind: SecondaryKind, before: float, after: float, tolerance: float | None
) -> Judgement:
    """Device memory in bytes, an error, or a time in nanoseconds, against the recorded one."""
    band = (TOLERANCES[kind] if tolerance is None else tolerance) * before
    way: Literal["worse", "better", "neutral"] = (
        "worse" if after > before + band else "better" if after < before - band else "neutral"
    )
    form = {"memory": "{:.0f}".format, "accuracy": "{:.4g}".format}.get(kind, duration)
    shown = [form(one) for one in (before, after)]
    change = Change(
        what=NAMES[kind], before=shown[0], after=shown[1], direction=way, unit="bytes" if kind == "memory" else "",
        note=percent(after / before - 1) if before and after != before else "",
    )  # fmt: skip
    verdict = {"worse": Verdict.WORSE, "better": Verdict.BETTER}.get(way, Verdict.SAME)
    reason = "" if verdict is Verdict.SAME else f"{NAMES[kind]} got {way}"
    return Judgement(key=key, target=target, kind=kind, verdict=verdict, reason=reason, changes=(change,))


# --- host time -----------------------------------------------------------------------------------


def as_on_record(record: HostTime, now: HostTime) -> float:
    """What one run takes, in nanoseconds, where fixed work takes as long as it did when it was recorded."""
    return record.time_ns * statistics.median(now.ratios) / statistics.median(record.ratios)


def incomparable(key: Key, target: str, record: HostTime, now: HostTime) -> Judgement | None:
    """INCONCLUSIVE where another CPU, Python or driver took the record; None if they are the same."""
    was, is_ = (record.cpu, now.cpu) if record.cpu != now.cpu else (record.made_by, now.made_by)
    if was == is_:
        return None
    reason = f"it was recorded on {was}, and this is {is_}: {ANEW}"
    return Judgement(key=key, target=target, kind="host", verdict=Verdict.INCONCLUSIVE, reason=reason)


def judge_host(
    key: Key, target: str, before_ns: float, after_ns: float, tolerance: float | None, second_ns: float | None = None
) -> Judgement:
    """The verdict on a host time ``as_on_record``; a loss or a gain is final with that of a second process."""
    first, second = (
        judge_exact(key, target, "host", before_ns, after_ns if time_ns is None else time_ns, tolerance)
        for time_ns in (after_ns, second_ns)
    )
    if second.verdict is first.verdict or first.verdict is Verdict.SAME:
        return first
    changes = tuple(msgspec.structs.replace(one, direction="neutral") for one in first.changes)
    verdict, reason = Verdict.SAME, ""
    if first.verdict is Verdict.WORSE and second_ns is not None:
        verdict = Verdict.INCONCLUSIVE
        reason = f"worse in one process, and x{second_ns / before_ns:.3f} in the next"
    return msgspec.structs.replace(first, verdict=verdict, reason=reason, changes=changes)
