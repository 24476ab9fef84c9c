"""Is it the same work, and if a time differs, what can have caused it?

Equal machine code, launched alike on alike arguments, cannot have regressed, whatever its time says.  Alike arguments
are the same work, however it is launched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_gpuperf.model.evidence import UNKNOWN_TOOLCHAIN
from pytest_gpuperf.model.time_record import Identity

_ALIGNMENT = re.compile(r"\s+align=\d+")
SAME_CODE = "the machine code is that of the baseline"
LAUNCH_CHANGED = "the launch changed"


def explain(old: Identity, new: Identity) -> str:
    """What made it differ, as a sentence: the source, the compiler, the launch, the arguments or none of them."""
    launch = "" if old.launch == new.launch else f"{LAUNCH_CHANGED} from {old.launch} to {new.launch}"
    arguments = other_arguments(old, new)
    if old.code != new.code:
        clauses = [tuned_otherwise(old.config, new.config), *_of_code(old, new)]
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
    """The autotuner's choice in the baseline and now, as a clause; empty where they are equal, or one is unknown."""
    return f"the configuration was {old} and is {new}" if old and new and old != new else ""


def _of_code(old: Identity, new: Identity) -> Iterator[str]:
    """Source and compiler of other machine code, as clauses; a configuration is in the source."""
    was, now = (one.toolchain or UNKNOWN_TOOLCHAIN for one in (old, new))
    if old.source and old.source == new.source:
        yield "the source is that of the baseline" + (", the machine code is not" if was == now else "")
    elif old.source and new.source and not tuned_otherwise(old.config, new.config):
        yield "the source and its machine code changed"
    else:
        yield "the machine code changed"
    if was != now:
        yield f"the compiler changed from {was} to {now}"
