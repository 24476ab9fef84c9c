"""Errors of baselines: what happened, to which file, and what to do.

Text that comes out of a baseline is untrusted: it is shortened, and its control characters are escaped.
"""

from __future__ import annotations

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import UNPRINTABLE


def has_unprintable(text: str) -> bool:
    """True if the text could steer a terminal, break a line, reverse its reading order or not be UTF-8."""
    return UNPRINTABLE.search(text) is not None


def quoted(text: str, limit: int = 80) -> str:
    """Untrusted text, fit for a terminal: at most ``limit`` characters, control characters escaped."""
    short = text if len(text) <= limit else text[: limit - 3] + "..."
    return UNPRINTABLE.sub(lambda match: ascii(match.group())[1:-1], short)


class BaselineError(GpuperfError):
    """Baselines cannot be read, written or found; the message names the file and the remedy."""


class CubinError(BaselineError):
    """The machine code that a baseline refers to is missing, altered, too large or not readable."""


def unreadable(place: object, problem: str) -> BaselineError:
    """The error of a file that is missing, or exists and is no baseline: malformed, in conflict or hostile."""
    return BaselineError(
        f"{place}: this baseline cannot be read: {problem}.\n"
        f"Restore it from version control (git checkout -- {place}), or delete it and record it again with "
        "--update-baselines."
    )
