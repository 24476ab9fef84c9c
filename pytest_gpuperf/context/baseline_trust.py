"""Which baselines this run believes: all of them on a desk, under CI those that the change under test did not bring.

A cubin is code that nobody can review, so one that a change brought along is not launched.  Nor is a commit run that
only the change has, or a record of the change's taken for the reading of machine code.  Comparing needs no trust.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.baselines.parsing import MAX_JSON_BYTES, read_bounded
from pytest_gpuperf.baselines.project_base import ProjectBase, holds, project_base
from pytest_gpuperf.baselines.snapshots import object_id
from pytest_gpuperf.config.options import Options

_SHA1_DIGITS = 40
"""In the name of a commit; git repositories of the other kind have 64."""


class BaselineTrust:
    """Of one process; git is asked at the first question that needs it, once."""

    def __init__(self, options: Options, folder: Path, *, compiled_here: bool = False) -> None:
        """``folder`` lies in the repository of the change under test.

        ``compiled_here``: what stands for baselines was compiled by this run, from the sources of a revision.
        """
        self._everything = not options.ci or options.trust_cubins or compiled_here
        self._folder = folder
        self._believed: dict[Path, bool] = {}

    @cached_property
    def _base(self) -> ProjectBase | str:
        """The project's own state, or why it is not known."""
        try:
            return project_base(self._folder)
        except RevisionError as problem:
            return str(problem)

    def why_not_launched(self, sha256: str) -> str:
        """Why the stored cubin of this hash is not to be launched, in the same words for all; empty if it may be."""
        return self._why_not("its baseline's cubin", lambda base: sha256 in base.cubins)

    def why_not_run(self, commit: str) -> str:
        """Why tests of a commit on record, a full id, are not to be run; empty if they may be."""
        return self._why_not("the commit of its record", lambda base: holds(self._folder, base, commit))

    def _why_not(self, what: str, is_known: Callable[[ProjectBase], bool]) -> str:
        if self._everything:
            return ""
        if isinstance(self._base, str):
            return f"nothing tells whether {what} came with this change ({self._base})"
        return "" if is_known(self._base) else f"{what} came with this change (it is not in {self._base.name})"

    def believes(self, path: Path) -> bool:
        """Whether a file of baselines has the project's own content, wherever that lies there."""
        if self._everything:
            return True
        if path not in self._believed:
            self._believed[path] = self._is_known(path)
        return self._believed[path]

    def _is_known(self, path: Path) -> bool:
        if isinstance(self._base, str):
            return False
        try:
            content = read_bounded(path, MAX_JSON_BYTES)
        except BaselineError:  # for the judge to tell
            return False
        hash_name = "sha1" if len(self._base.commit) == _SHA1_DIGITS else "sha256"
        return content is None or object_id(content, hash_name) in self._base.records
