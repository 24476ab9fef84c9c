"""Is it the same work, and if a time differs, what can have caused it?

Equal machine code, launched alike on alike arguments, cannot have regressed, whatever its time says.  Alike arguments
are the same work, however it is launched.  Times of different work, timers or cache states prove nothing good.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Literal

from pytest_gpuperf.model.evidence import CacheMode, Identity, TimeRecord
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.model.toolchain_names import is_known, same_toolchain

Relation = Literal["unchanged", "comparable", "not comparable"]
Cause = Literal["environment", "launch", "arguments", "compiler", "code", "code or compiler", "unknown"]

_ALIGNMENT = re.compile(r"\s+align=\d+")
RECORD_ANEW = ": record the baseline anew with pytest --update-baselines if that is intended"
"""What to do about other work, where there is a record."""
SAME_CODE = "the machine code is that of the baseline"
LAUNCH_CHANGED = "the launch changed"
_UNSAID = "neither says which compiler made it"
_CALLABLE = "callable"
"""The launch of what is no single launch."""


@dataclasses.dataclass(frozen=True)
class Comparability:
    """How a candidate relates to its baseline."""

    relation: Relation
    cause: Cause
    """What a difference in time would be due to."""
    reason: str
    """One sentence for people."""
    measured_otherwise: tuple[str, ...] = ()
    """Why the times on record are no measure for today's, as clauses."""
    pairable: bool = False
    """The two may run side by side, whatever is on record: each launched as it is, or was, on its own arguments."""


def same_work(old: TimeRecord, new: Identity, timer: TimerName, cache: CacheMode) -> Comparability:
    """Compare what the baseline timed, and how, with what the candidate times, and how.

    Neither a changed toolchain, which ``cause`` then names, nor another launch stops the comparison: a slower kernel is
    a regression whoever made it.  Arguments that differ are another workload, which may be paired with that on record;
    an array that is merely aligned otherwise is not.  Another timer leaves unchanged code unchanged.  Another timer or
    cache state keeps changed code from being compared with the record, but not from being paired.
    """
    otherwise, other_work = tuple(_measured_otherwise(old, timer, cache)), tuple(_other_work(old.identity, new))
    cause, same = attribute(old.identity, new), old.identity.same_execution(new)
    if same and old.cache == cache:
        reason = "; ".join(["the machine code and its launch are those of the baseline", *otherwise])
        return Comparability("unchanged", "environment", reason, otherwise, pairable=True)
    if otherwise or other_work:
        reason = "; ".join([*otherwise, *other_work]) + RECORD_ANEW
        return Comparability("not comparable", cause, reason, otherwise, pairable=not same)
    return Comparability("comparable", cause, explain(cause, old.identity, new), pairable=True)


def attribute(old: Identity, new: Identity) -> Cause:
    """What made it differ: the source, the compiler, the launch alone or none of them."""
    if not old.code or not new.code:
        return "unknown"
    if old.code == new.code:
        changed: Cause = "arguments" if other_arguments(old, new) else "environment"
        return changed if old.launch == new.launch else "launch"
    if old.source and old.source == new.source:
        return "compiler"
    return "code" if same_toolchain(old.toolchain, new.toolchain) else "code or compiler"


def explain(cause: Cause, old: Identity, new: Identity) -> str:
    """The attribution as a sentence, with the arguments that differ."""
    launch = "" if old.launch == new.launch else f"{LAUNCH_CHANGED} from {old.launch} to {new.launch}"
    if cause == "environment":
        clauses = [f"{SAME_CODE}: a difference in time comes from the environment"]
    elif cause in ("arguments", "launch"):
        clauses = [SAME_CODE, launch]
    else:
        clauses = [tuned_otherwise(old.config, new.config), _of_code(cause, old, new), launch]
    return "; ".join(filter(None, [*clauses, *other_arguments(old, new)]))


def other_arguments(old: Identity, new: Identity) -> tuple[str, ...]:
    """What differs between the arguments, as clauses; empty if nothing but alignments does."""
    if len(old.arguments) != len(new.arguments):
        return (f"{len(old.arguments)} arguments became {len(new.arguments)}",)
    both = enumerate(zip(old.arguments, new.arguments, strict=True), start=1)
    return tuple(
        f"argument {position} was {before} and is {after}"
        for position, (before, after) in both
        if _ALIGNMENT.sub("", before) != _ALIGNMENT.sub("", after)
    )


def tuned_otherwise(old: str, new: str) -> str:
    """What an autotuner chose on record and now, as a clause; empty where that is the same, or one is not known."""
    return f"the configuration was {old} and is {new}" if old and new and old != new else ""


def _of_code(cause: Cause, old: Identity, new: Identity) -> str:
    if cause == "unknown":
        return "a callable has no machine code to compare: a difference may come from the code or from the environment"
    sources_known = bool(old.source and new.source) and not tuned_otherwise(old.config, new.config)  # which is in them
    if cause == "code":
        return "the source and its machine code changed" if sources_known else "the machine code changed"
    unsaid = not (is_known(old.toolchain) or is_known(new.toolchain))
    if cause == "code or compiler":
        what = "source" if sources_known else "machine code"
        compilers = f"{old.toolchain or 'unknown'} to {new.toolchain or 'unknown'}"
        return f"the {what} changed; {_UNSAID}" if unsaid else f"the {what} changed, and the compiler from {compilers}"
    if same_toolchain(old.toolchain, new.toolchain) or unsaid:
        code = "the source is that of the baseline, the machine code is not"
        return f"{code}; {_UNSAID}" if unsaid else code
    return f"the source is that of the baseline; the compiler changed from {old.toolchain} to {new.toolchain}"


def _measured_otherwise(old: TimeRecord, timer: TimerName, cache: CacheMode) -> Iterator[str]:
    if old.timer != timer:
        yield f"the timer changed from {old.timer} to {timer}, and times of different timers are not compared"
    if old.cache != cache:
        yield f"the cache state changed from {old.cache} to {cache}"


def _other_work(old: Identity, new: Identity) -> Iterator[str]:
    if old.launch != new.launch and _CALLABLE in (old.launch, new.launch):
        yield f"the workload changed: launch {old.launch} became {new.launch}"
    for clause in other_arguments(old, new):
        yield f"the workload changed: {clause}"
