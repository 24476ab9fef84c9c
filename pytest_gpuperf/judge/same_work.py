"""Is it the same work, and if a time differs, what can have caused it?

Equal machine code, launched alike on alike arguments, cannot have regressed, whatever its time says.  Alike arguments
are the same work, however it is launched.
"""

from __future__ import annotations

import re

from pytest_gpuperf.model.evidence import is_known, same_toolchain
from pytest_gpuperf.model.time_record import Identity

_ALIGNMENT = re.compile(r"\s+align=\d+")
RECORD_ANEW = ": record the baseline anew with pytest --update-baselines if that is intended"
"""What to do about other work, where there is a record."""
SAME_CODE = "the machine code is that of the baseline"
LAUNCH_CHANGED = "the launch changed"
_UNSAID = "neither says which compiler made it"


def explain(old: Identity, new: Identity) -> str:
    """What made it differ, as a sentence: the source, the compiler, the launch, the arguments or none of them."""
    launch = "" if old.launch == new.launch else f"{LAUNCH_CHANGED} from {old.launch} to {new.launch}"
    arguments = other_arguments(old, new)
    if old.code != new.code:
        clauses = [tuned_otherwise(old.config, new.config), _of_code(old, new)]
    elif launch or arguments:
        clauses = [SAME_CODE]
    else:
        clauses = [f"{SAME_CODE}: a difference in time comes from the environment"]
    return "; ".join(filter(None, [*clauses, launch, *arguments]))


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


def _of_code(old: Identity, new: Identity) -> str:
    """Source or compiler of other machine code; a configuration is in the source."""
    unsaid = "" if is_known(old.toolchain) or is_known(new.toolchain) else f"; {_UNSAID}"
    compilers = ""
    if not unsaid and not same_toolchain(old.toolchain, new.toolchain):
        compilers = f"from {old.toolchain or 'unknown'} to {new.toolchain or 'unknown'}"
    if old.source and old.source == new.source:
        changed = f"; the compiler changed {compilers}" if compilers else f", the machine code is not{unsaid}"
        return f"the source is that of the baseline{changed}"
    sources_known = old.source and new.source and not tuned_otherwise(old.config, new.config)
    if compilers or unsaid:
        what = "source" if sources_known else "machine code"
        return f"the {what} changed, and the compiler {compilers}" if compilers else f"the {what} changed{unsaid}"
    return "the source and its machine code changed" if sources_known else "the machine code changed"
