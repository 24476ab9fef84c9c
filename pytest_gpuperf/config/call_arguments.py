"""How the fixtures refuse what they do not take."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

_WORDS: dict[type, str] = {str: "a string", os.PathLike: "a path"}


class BadArgument(TypeError):
    """A fixture was called with something that it does not take; the message says what it takes."""


def require(call: str, name: str, value: object, *kinds: type) -> None:
    """Raise ``BadArgument`` unless the argument ``name`` of ``call`` is of one of the ``kinds``: ``str``, a path."""
    if not isinstance(value, kinds):
        raise BadArgument(f"{call}: {name} is {_described(value)}; it takes {_words(kinds)}")


def require_list(call: str, name: str, values: object, *kinds: type) -> None:
    """Raise ``BadArgument`` unless the argument is a list or the like, and all in it is of the ``kinds``, if any."""
    if isinstance(values, str | bytes | os.PathLike):
        given = str(values) if isinstance(values, os.PathLike) else values
        raise BadArgument(f"{call}: {name}={given!r} is a single one; it takes a list: {name}=[{given!r}]")
    if isinstance(values, Mapping) or not isinstance(values, Collection):
        raise BadArgument(f"{call}: {name} is {_described(values)}; it takes a list")
    for value in values if kinds else ():
        if not isinstance(value, kinds):
            raise BadArgument(f"{call}: {name} holds {_described(value)}; each of them is {_words(kinds)}")


def _described(value: object) -> str:
    return "None" if value is None else f"{value!r}, of type {type(value).__name__}"


def _words(kinds: tuple[type, ...]) -> str:
    return " or ".join(_WORDS[kind] for kind in kinds)
