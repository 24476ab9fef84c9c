"""Is it the same work, and if a time differs, what can have caused it?

Equal machine code, launched alike on alike arguments, cannot have regressed, whatever its time says.  Alike arguments
are the same work, however it is launched.
"""

from __future__ import annotations

import re
from typing import Literal

from pytest_gpuperf.model.evidence import is_known, same_toolchain
from pytest_gpuperf.model.time_record import Identity

Cause = Literal["environment", "launch", "arguments", "compiler", "code", "code or compiler", "unknown"]

_ALIGNMENT = re.compile(r"\s+align=\d+")
RECORD_ANEW = ": record the baseline anew with pytest --update-baselines if that is intended"
"""What to do about other work, where there is a record."""
SAME_CODE = "the machine code is that of the baseline"
LAUNCH_CHANGED = "the launch changed"
_UNSAID = "neither says which compiler made it"
_CALLABLE = "callable"
"""The launch of what is no single launch."""


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


def other_work(old: Identity, new: Identity) -> tuple[str, ...]:
    """Why the two are not the same work, as clauses; empty if they are, whatever code does it and however launched."""
    if old.launch != new.launch and _CALLABLE in (old.launch, new.launch):
        return (f"the workload changed: launch {old.launch} became {new.launch}",)
    return tuple(f"the workload changed: {clause}" for clause in other_arguments(old, new))
