"""Arguments of ``gpuperf`` as they were given, read: each function raises ``BadArgument`` for what it does not take."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from pytest_gpuperf.arguments import BadArgument, number_of, one_line
from pytest_gpuperf.device.launch import Launch


def require_callable(workload: object) -> Callable[[], Any]:
    """The workload."""
    if callable(workload):
        return _run_by_a_call("the workload", workload)
    given = type(workload).__name__
    remedy = "pass kernel.launch(...) or a function that launches"
    raise BadArgument(f"gpuperf measures a launch or a callable, not {given}: {remedy}")


def name_of(workload: Any, given: object) -> str:
    """A key of the baselines and part of a line in the report; else a launch's kernel, or a callable's own."""
    if given is None:
        given = workload.kernel.name if isinstance(workload, Launch) else getattr(workload, "__name__", "workload")
    return one_line("gpuperf", "name", given)


def function(what: str, given: object, *arguments: str) -> Callable[..., Any] | None:
    """One that is called with these arguments; what a check asks for is seen with the rest of the request."""
    if given is None:
        return None
    if not callable(given):
        raise _refused(what, given, f"a function, which gpuperf calls: {what}=lambda: ...")
    if what != "check":
        try:
            inspect.signature(given).bind(*arguments)
        except ValueError:  # of a builtin
            pass
        except TypeError as problem:
            raise BadArgument(f"gpuperf: {what}= is called as {what}({', '.join(arguments)}): {problem}") from None
    return _run_by_a_call(f"{what}=", given)


def _run_by_a_call(what: str, given: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose body runs when it is called: that of a generator or a coroutine would never run."""
    for body in (given, type(given).__call__):  # of an object, whose class has the function
        if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
            raise BadArgument(
                f"gpuperf: {what} is called, and nothing in it would run: it has a yield, or is async. Give a plain "
                "function"
            )
    return given


def arrays(what: str, given: object) -> tuple[Any, ...]:
    """One array, or a tuple or list of them."""
    found = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not all(hasattr(array, "shape") and hasattr(array, "dtype") for array in found):
        raise _refused(what, given, "the arrays that the workload writes: outputs=(y,)")
    return found


def amount(what: str, given: Any) -> int | None:
    """Of bytes or operations as Python's int of 64 bits, whichever library's type it has; ``2e9`` is one, too."""
    if given is None:
        return None
    try:
        number = int(given)
    except (TypeError, ValueError, OverflowError):  # no number, NaN, infinity
        number = 0
    if math.isnan(number_of(given)) or not 0 < number < 2**63 or number != given:
        raise _refused(what, given, "a whole number above 0 and below 2**63")
    return number


def _refused(what: str, given: object, accepts: str) -> BadArgument:
    return BadArgument(f"gpuperf: {what}={given!r} is not valid: it takes {accepts}")
