"""Counters against counters: exact ones exactly, near-exact ones by a band, the rest never.

A counter is one number per workload: there is no scatter to test, so each metric comes with the band in which it stays
on unchanged code (``CounterRule``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pytest_gpuperf.judge import static_rules
from pytest_gpuperf.model.evidence import CacheMode, Identity, Key
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict

Better = Literal["lower", "higher", "neutral"]

PASSES = "profiler__replayer_passes"
"""The metric that says how often ncu ran a kernel to collect all."""
_OF_CACHES = ("dram__", "lts__")


def depends_on_caches(name: str) -> bool:
    """Whether a metric counts traffic of the L2 or of DRAM: what there is of it depends on what the caches held."""
    return name.startswith(_OF_CACHES)


@dataclasses.dataclass(frozen=True)
class CounterRule:
    """How one metric is compared."""

    name: str
    what: str
    """As a reader knows it: ``DRAM bytes read``."""
    unit: str = ""
    better: Better = "lower"
    """Which way is better; a ``neutral`` metric never gates."""
    tolerance: float | None = 0.0
    """Relative change that is none; None: the metric informs and never gates."""
    floor: float = 0.0
    """Absolute change that is none, in the metric's unit."""
    of_caches: bool = False
    """Whether it depends on what the caches held: replaying a warm workload for other metrics changes that."""


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Under what counters were taken: other conditions, other work."""

    identity: Identity
    cache: CacheMode
    passes: float | None = None
    """Times that each kernel was run to collect them (the most of several); None if that is not known."""


def compare_counters(
    key: Key,
    target: str,
    old: Mapping[str, float],
    new: Mapping[str, float],
    table: Sequence[CounterRule],
    *,
    before: Conditions | None = None,
    after: Conditions | None = None,
    notes: Sequence[str] = (),
) -> Judgement:
    """Judge counters ``new`` against ``old``, each by canonical name.

    Metrics that only one side has are named in the notes.  An empty ``old`` is NEW, other conditions or nothing to
    compare are NOT-COMPARABLE.  Traffic of a warm workload is compared only with what was taken in as many passes.
    """
    disturbed = before is not None and after is not None and _replayed_otherwise(before, after)
    obstacle = _obstacle(before, after) if old and before and after else ""
    gated = [rule for rule in table if rule.tolerance is not None and not (disturbed and rule.of_caches)]
    both = [rule for rule in gated if rule.name in old and rule.name in new]
    changes: tuple[Change, ...] = ()
    if not old:
        verdict, reason = Verdict.NEW, "no counters on record: record them with pytest --update-baselines --gpuperf-ncu"
    elif obstacle or not both:
        obstacle = obstacle or "no metric that gates is on record and was collected too"
        verdict, reason = Verdict.NOT_COMPARABLE, f"{obstacle}: record anew with --update-baselines --gpuperf-ncu"
    else:
        changes = tuple(_changes(both, old, new))
        verdict, reason = _verdict(changes)
    if verdict not in (Verdict.NEW, Verdict.NOT_COMPARABLE):
        replays = (REPLAYED_OTHERWISE,) if disturbed and old else ()
        notes = (*notes, *replays, *_one_sided(gated, old, new))
    return Judgement(
        key=key, target=target, kind="counters", verdict=verdict, reason=reason, changes=changes, notes=tuple(notes)
    )


MOST_LISTED = 4
"""Metrics that a note names."""
REPLAYED_OTHERWISE = (
    "not compared: DRAM and L2 traffic; with a warm L2 it depends on how many passes a kernel is run in, "
    "so on what else is collected"
)


def _replayed_otherwise(before: Conditions, after: Conditions) -> bool:
    return after.cache == "warm" and not same_passes(before.passes, after.passes)


def same_passes(before: float | None, after: float | None) -> bool:
    """Whether two takes are known to have run each kernel equally often."""
    return before is not None and before == after


def _one_sided(gated: Sequence[CounterRule], old: Mapping[str, float], new: Mapping[str, float]) -> Iterable[str]:
    missing = [rule.what for rule in gated if rule.name in old and rule.name not in new]
    if missing:
        yield f"on record and not collected by this run: {_listed(missing)}"
    added = [rule.what for rule in gated if rule.name in new and rule.name not in old]
    if added:
        yield f"collected and not on record yet (--update-baselines=new --gpuperf-ncu adds them): {_listed(added)}"


def _listed(names: Sequence[str]) -> str:
    """All of a few, and the first of many: a smaller set than the one on record lacks dozens."""
    if len(names) <= MOST_LISTED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_LISTED - 1])} and {len(names) - MOST_LISTED + 1} more"


def not_counted(key: Key, target: str, reason: str) -> Judgement:
    """The judgement where counters were asked for and there are none."""
    return Judgement(key=key, target=target, kind="counters", verdict=Verdict.NOT_MEASURED, reason=reason)


def _obstacle(before: Conditions, after: Conditions) -> str:
    """Why two sets of counters do not tell of the same work; empty if they do."""
    if before.cache != after.cache:
        return f"the counters on record were taken with a {before.cache} L2, these with a {after.cache} one"
    if before.identity.launch != after.identity.launch:
        return f"the launch changed from {before.identity.launch} to {after.identity.launch}"
    if before.identity.arguments != after.identity.arguments:
        old, new = (", ".join(side.identity.arguments) or "none" for side in (before, after))
        return f"the arguments changed from {old} to {new}"
    return ""


def _changes(table: Iterable[CounterRule], old: Mapping[str, float], new: Mapping[str, float]) -> Iterable[Change]:
    for rule in table:
        before, after = old[rule.name], new[rule.name]
        if beyond(rule, before, after):
            yield Change(
                what=rule.what, before=before, after=after, unit=rule.unit, direction=_direction(rule, before, after),
                note=_relative(before, after),
            )  # fmt: skip


def beyond(rule: CounterRule, before: float, after: float) -> bool:
    """Whether a change is larger than the rule's band."""
    return abs(after - before) > max(rule.floor, (rule.tolerance or 0.0) * abs(before))


def _direction(rule: CounterRule, before: float, after: float) -> static_rules.Direction:
    if rule.better == "neutral":
        return "neutral"
    trend = static_rules.less_is_better if rule.better == "lower" else static_rules.more_is_better
    return trend(before, after)


def _relative(before: float, after: float) -> str:
    return f"{(after / before - 1) * 100:+.2f} %" if before else ""


def _verdict(changes: Sequence[Change]) -> tuple[Verdict, str]:
    for verdict, word in ((Verdict.WORSE, "worse"), (Verdict.BETTER, "better")):
        named = [change.what for change in changes if change.direction == word]
        if named:
            return verdict, f"the counters got {word}: {', '.join(named)}"
    return Verdict.UNCHANGED, ""
