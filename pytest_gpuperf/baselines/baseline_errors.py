"""Exceptions of baselines: one class per failure that a caller could treat differently.

Every message says what happened, to which file, and what to do.  Text that comes out of a baseline file is
untrusted: it is shortened and its control characters are escaped before it reaches a terminal.
"""

from __future__ import annotations

from pathlib import Path

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import UNPRINTABLE


def has_unprintable(text: str) -> bool:
    """True if the text could steer a terminal, break a line, reverse its reading order or not be UTF-8."""
    return UNPRINTABLE.search(text) is not None


def quoted(text: str, limit: int = 80) -> str:
    """Untrusted text, fit for a terminal: at most ``limit`` characters, control characters escaped."""
    short = text if len(text) <= limit else text[: limit - 3] + "..."
    return UNPRINTABLE.sub(lambda match: ascii(match.group())[1:-1], short)


_RESTORE = (
    "Make it readable, restore it from version control (git checkout -- {path}), or delete it and record it again "
    "with --update-baselines."
)
_TAKE_A_SIDE = (
    "Resolve the code first; then merge this and all other baselines in conflict with 'gpuperf resolve'. "
    "Or take either side (while git merges: git checkout --theirs -- {path}; see "
    "docs/how-to/accepting-changes.md, 'Merge conflicts'), or delete it and record it again with --update-baselines."
)
"""A plain ``git checkout`` of a file refuses while it is unmerged."""


class BaselineError(GpuperfError):
    """Base of everything that this package raises on purpose."""


class UnreadableBaselineError(BaselineError):
    """A baseline file exists and is not a baseline: truncated, malformed, wrongly typed or hostile."""

    def __init__(self, path: Path, problem: str, *, merging: bool = False) -> None:
        self.problem = problem
        remedy = _TAKE_A_SIDE if merging else _RESTORE
        super().__init__(f"{path}: this baseline cannot be read: {problem}.\n{remedy.format(path=path)}")


class MissingManifestError(BaselineError):
    """There are records, and no file says which targets are gated."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: there is nothing to read: it is missing, and it says which targets are gated.\n"
            f"Restore it from version control (git checkout -- {path}), or let an update write it anew, of the targets "
            "that have a folder: pytest --update-baselines=new."
        )


class NewerSchemaError(BaselineError):
    """A baseline was written by a newer release."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path}: this baseline has schema version {found}; this pytest-gpuperf knows up to version {known}.\n"
            "Upgrade pytest-gpuperf to the release that wrote it (pip install --upgrade pytest-gpuperf)."
        )


class UnsafePathError(BaselineError):
    """A module, a target or a link would lead out of the baseline folder, or to a name some systems lack."""


class CubinError(BaselineError):
    """The machine code that a baseline refers to is missing, altered, too large or not readable."""


class MissingCubinError(CubinError):
    """There is no file of the machine code that a baseline refers to."""


class UnwritableEvidenceError(BaselineError):
    """Evidence that must not become a baseline: not finite, out of range, or referring to what is not there."""


class BaselineWriteError(BaselineError):
    """The file system refused: read-only, full, a file where a folder should be.  Old files are untouched."""

    def __init__(self, path: Path, cause: OSError, written: tuple[Path, ...] = ()) -> None:
        self.written = written
        done = f" {len(written)} other file(s) of this update were already written whole." if written else ""
        super().__init__(
            f"{path}: the baseline could not be written: {cause.strerror or cause}. The file is as it was.{done}\n"
            "Make the folder writable, free space on its disk, or choose another one with --gpuperf-baselines."
        )


class BaselineLockError(BaselineError):
    """There can be no lock for the baselines, so nothing was written: their folder refuses it."""


class BaselineLockedError(BaselineError):
    """Another run has held the baselines' lock for longer than this one was willing to wait."""
