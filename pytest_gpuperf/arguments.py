"""How the fixtures refuse what they do not take."""

from __future__ import annotations


class BadArgument(TypeError):
    """A fixture was called with something that it does not take; the message says what it takes."""
