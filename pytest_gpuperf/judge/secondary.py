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

from pytest_gpuperf.formatting import duration, percent
from pytest_gpuperf.judge.static_rules import Direction
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import HostTime
from pytest_gpuperf.model.verdict import Change, Judgement, SecondaryKind, Verdict

TOLERANCES: Mapping[SecondaryKind, float] = MappingProxyType({"memory": 0.005, "accuracy": 0.1, "host": 0.5})
"""More by no more than this fraction is accepted."""
NAMES: Mapping[SecondaryKind, str] = MappingProxyType(
    {"memory": "device memory", "accuracy": "error", "host": "host time"}
)
Figure = float | HostTime


def new(key: Key, target: str, kind: SecondaryKind) -> Judgement:
    reason = f"no recorded {NAMES[kind]}: record it with pytest --update-baselines=new"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NEW, reason=reason)


def not_asked_for(key: Key, target: str, kind: SecondaryKind) -> Judgement:
    """Of a recorded figure that the test does not ask for."""
    asked = "accuracy=" if kind == "accuracy" else f"measure=({kind!r},)"
    reason = f"its {NAMES[kind]} is recorded, but the test does not measure it: pass {asked} again, or record it again"
    return Judgement(key=key, target=target, kind=kind, verdict=Verdict.NOT_MEASURED, reason=reason)


def judge(
    key: Key, target: str, kind: SecondaryKind, before: float, after: float, tolerance: float | None,
    second: float | None = None,
) -> Judgement:  # fmt: skip
    """A figure ``as_on_record`` against the recorded one; a loss or a gain is final with that of a second process."""
    band = (TOLERANCES[kind] if tolerance is None else tolerance) * before
    ways: list[Direction] = [
        "worse" if one > before + band else "better" if one < before - band else "neutral"
        for one in (after, after if second is None else second)
    ]
    way = ways[0] if ways[0] == ways[1] else "neutral"
    form = {"memory": "{:.0f}".format, "accuracy": "{:.4g}".format}.get(kind, duration)
    change = Change(
        what=NAMES[kind], before=form(before), after=form(after), unit="bytes" if kind == "memory" else "",
        direction=way, note=percent(after / before - 1) if before and after != before else "",
    )  # fmt: skip
    verdict = {"worse": Verdict.WORSE, "better": Verdict.BETTER}.get(way, Verdict.SAME)
    reason = "" if verdict is Verdict.SAME else f"{NAMES[kind]} got {way}"
    if ways[0] == "worse" and way == "neutral" and second is not None:
        verdict, reason = Verdict.INCONCLUSIVE, f"worse in one process, and x{second / before:.3f} in the next"
    return Judgement(key=key, target=target, kind=kind, verdict=verdict, reason=reason, changes=(change,))


# --- host time -----------------------------------------------------------------------------------


def as_on_record(record: Figure, now: Figure) -> float:
    """The figure; of a host time what one run takes, in ns, where fixed work takes as long as when it was recorded."""
    if isinstance(record, HostTime) and isinstance(now, HostTime):
        return record.time_ns * statistics.median(now.ratios) / statistics.median(record.ratios)
    assert isinstance(now, int | float)
    return now


def incomparable(key: Key, target: str, record: HostTime, now: HostTime) -> Judgement | None:
    """INCONCLUSIVE where another CPU, Python or driver took the record; None if they are the same."""
    was, is_ = (record.cpu, now.cpu) if record.cpu != now.cpu else (record.made_by, now.made_by)
    if was == is_:
        return None
    anew = "record it on this machine with pytest --update-baselines=all"
    reason = f"it was recorded on {was}, and this is {is_}: {anew}"
    return Judgement(key=key, target=target, kind="host", verdict=Verdict.INCONCLUSIVE, reason=reason)
