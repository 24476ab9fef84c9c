"""The test's own ``check``: called with what it asks for, and its answer taken at its word."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from pytest_gpuperf.config.call_arguments import BadArgument

UNTIMED = "; nothing was timed"
ASKABLE = ("result", "inputs", "seed")
"""Parameters that a check of a guarded workload may have."""


class WrongResult(AssertionError):
    """``check`` returned ``False``, or an array of bool that is not true everywhere; or it failed after the timing."""


def in_words(name: str, problem: AssertionError) -> str:
    """What a failed check said of the workload of this name, for a message on what was timed."""
    return str(problem).removeprefix(f"{name}: ").replace(UNTIMED, "") or "its check failed"


def asked_of(check: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters that a check has to be given.  Raises ``BadArgument`` for others than ``ASKABLE``."""
    try:
        parameters = inspect.signature(check).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    asked = tuple(one.name for one in parameters if one.default is one.empty and one.kind in named)
    if not set(asked) <= set(ASKABLE):
        raise BadArgument(
            f"gpuperf: check takes {', '.join(asked)}: with inputs= or outputs= it may take {', '.join(ASKABLE)}"
        )
    return asked


def require_yes(name: str, check: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise what the check raises, and ``WrongResult`` where it says no."""
    refuse_no(name, check(**{key: given[key] for key in asked_of(check)} if given else {}))


def refuse_no(name: str, answer: Any) -> None:
    """Raise ``WrongResult`` for a check that says no, in Python's words or in those of an array library.

    Several answers, in a tuple, list or dict, are each taken at their word.  Raises ``BadArgument`` for one that says
    neither yes nor no, above all for what has not run yet: it has compared nothing.
    """
    if isinstance(answer, tuple | list | Mapping):
        for one in answer.values() if isinstance(answer, Mapping) else answer:
            refuse_no(name, one)
        return
    if callable(answer) or isinstance(answer, Iterator | Awaitable | AsyncIterator):
        if inspect.iscoroutine(answer):
            answer.close()  # or Python warns of it, too
        raise BadArgument(
            f"{name}: the check of its result returned a {type(answer).__name__}, which did not run, so it compared "
            f"nothing: run it in the check{UNTIMED}"
        )
    is_array_of_bool = str(getattr(answer, "dtype", "")) in ("bool", "torch.bool")
    if answer is False or (is_array_of_bool and not answer.all()):  # cupy.allclose gives an array of no dimensions
        said = "an array that is not true everywhere" if getattr(answer, "shape", ()) else "False"
        raise WrongResult(f"{name}: the check of its result returned {said}{UNTIMED}")
    if answer is not None and answer is not True and not is_array_of_bool:
        raise BadArgument(
            f"{name}: the check of its result returned {reprlib.repr(answer)}, of type {type(answer).__name__}, which "
            f"says neither yes nor no: compare in the check, which returns True or False, or raises{UNTIMED}"
        )
