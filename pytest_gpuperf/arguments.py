"""How the fixtures refuse what they do not take."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.model.limits import MOST_BUDGET_S, MOST_DELTA_US, TOLERANCES, is_metric

_TYPE_NAMES: dict[type, str] = {str: "a string", os.PathLike: "a path"}


class BadArgument(GpuperfError, TypeError):
    """A fixture was called with something that it does not take; the message says what it takes."""


def refused(call: str, name: str, given: object, takes: str) -> BadArgument:
    """The error for an argument that its call does not take."""
    return BadArgument(f"{call}: {name}={given!r} is not valid: it takes {takes}")


def require(call: str, name: str, value: object, *kinds: type) -> None:
    """Raise ``BadArgument`` unless the argument ``name`` of ``call`` is of one of the ``kinds``: ``str``, a path."""
    if not isinstance(value, kinds):
        raise refused(call, name, value, " or ".join(_TYPE_NAMES[kind] for kind in kinds))


def one_line(call: str, name: str, given: object) -> str:
    """The argument, which is part of lines in reports and a key of baselines.  Raises ``BadArgument``."""
    if not isinstance(given, str) or not given or not given.isprintable():
        raise refused(call, name, given, "text of one line, printable")
    return str(given)


def require_list(call: str, name: str, values: object, *kinds: type) -> None:
    """Raise ``BadArgument`` unless the argument is a list or the like, and all in it is of the ``kinds``, if any."""
    if isinstance(values, str | bytes | os.PathLike):
        given = str(values) if isinstance(values, os.PathLike) else values
        raise refused(call, name, given, f"a list: {name}=[{given!r}]")
    if isinstance(values, Mapping | set | frozenset) or not isinstance(values, Collection):  # a set has no order
        raise refused(call, name, values, "a list")
    for place, value in enumerate(values if kinds else ()):
        require(call, f"{name}[{place}]", value, *kinds)


def number_of(given: Any) -> float:
    """The number, of whichever library; NaN for what is none: text, yes and no, or one that no float can hold."""
    if isinstance(given, str | bytes | bool) or str(getattr(given, "dtype", "")).endswith("bool"):
        return math.nan
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _is_fraction(given: object) -> bool:
    return 0 < number_of(given) <= 0.5


def _one_of(*choices: str) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, str) and given in choices


def _names_of(is_name: Callable[[str], bool], is_tolerance: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether they are names, or a dict of name to tolerance or None."""

    def accepts(given: Any) -> bool:
        if isinstance(given, str | bytes) or not isinstance(given, Collection):
            return False
        tolerances = [one for one in given.values() if one is not None] if isinstance(given, Mapping) else []
        return all(isinstance(one, str) and is_name(one) for one in given) and all(map(is_tolerance, tolerances))

    return accepts


SETTINGS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "tolerance": (
        lambda given: _one_of(*TOLERANCES)(given) or _is_fraction(given),
        f"{', '.join(map(repr, TOLERANCES))}, or a fraction up to 0.5, such as 0.02"
    ),
    "min_delta_us": (lambda given: 0 <= number_of(given) <= MOST_DELTA_US, f"microseconds, up to {MOST_DELTA_US}"),
    "cache": (_one_of("cold", "warm"), "'cold' or 'warm'"),
    "budget_s": (
        lambda given: 0 < number_of(given) <= MOST_BUDGET_S, f"seconds, more than 0 and up to {MOST_BUDGET_S}"
    ),
    "sustained": (lambda given: isinstance(given, bool), "True or False"),
    "metrics": (
        _names_of(is_metric, lambda given: -1 <= number_of(given) <= 100),
        "names of metrics, such as 'smsp__inst_executed.sum', or a dict of name to tolerance, a fraction or None",
    ),
    "measure": (
        _names_of(_one_of("memory", "host", "elapsed"), _is_fraction),
        "names, of 'memory', 'host' and 'elapsed', or a dict of name to tolerance, a fraction up to 0.5 or None",
    ),
}  # fmt: skip
"""Keywords of the marker and arguments of ``gpuperf``: what each accepts, and that in words."""


def setting_problem(name: str, given: object) -> str | None:
    """What is wrong with one of ``SETTINGS``; None if nothing is."""
    accepts, expected = SETTINGS[name]
    return None if accepts(given) else f"{name}={given!r} is not valid: it takes {expected}"


def require_setting(name: str, given: object) -> None:
    """Raise ``BadArgument`` for an argument of ``gpuperf`` that is given and is not what it takes."""
    if given is not None and (problem := setting_problem(name, given)):
        raise BadArgument(f"gpuperf: {problem}")


def tolerances(name: str, *given: Collection[str] | Mapping[str, float | None] | None) -> dict[str, float | None]:
    """``metrics=`` or ``measure=`` of marker and call, the last word winning: name to tolerance, None for the usual.

    Raises ``BadArgument``.
    """
    found: dict[str, float | None] = {}
    for one in given:
        require_setting(name, one)
        pairs = one.items() if isinstance(one, Mapping) else [(word, None) for word in one or ()]
        found |= {str(word): None if tolerance is None else float(tolerance) for word, tolerance in pairs}
    return found
