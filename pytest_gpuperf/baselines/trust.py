"""The one rule of trust: under CI no stored cubin is launched that the default branch lacks.

A cubin is machine code that nobody can review, so one that a change brought along is not launched.  The default branch
has a cubin in its tree or pins it (``pin``).  Comparing figures needs no trust, and what was compiled by this run is no
stored cubin.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_gpuperf.baselines import pin
from pytest_gpuperf.baselines.git_objects import RevisionError, git_message, run_git
from pytest_gpuperf.baselines.layout import cubin_named

TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""Variables in which GitHub and GitLab name the branch that a change is meant for."""


class BaselineTrust:
    """Of one process; git is asked at the first question that needs it, once."""

    def __init__(self, folder: Path, *, everything: bool) -> None:
        """``folder`` lies in the repository of the change under test; ``everything`` may be launched outside of CI."""
        self._folder, self._everything = folder, everything

    def why_not_launched(self, sha256: str) -> str:
        """Why the stored cubin of this hash is not to be launched, in the same words for all; empty if it may be."""
        if self._everything:
            return ""
        try:
            name, cubins = self._of_default_branch
        except RevisionError as problem:
            return f"it is not known whether its baseline's cubin came with this change ({problem})"
        return "" if sha256 in cubins else f"its baseline's cubin came with this change (it is not in {name})"

    @cached_property
    def _of_default_branch(self) -> tuple[str, frozenset[str]]:
        """The commit where the change left the default branch, in words, and SHA-256 of the cubins that it has.

        Raises ``RevisionError`` where there is no git, no repository, or no such branch.
        """
        remotes = run_git(self._folder, "for-each-ref", "--count=1", "refs/remotes")
        if remotes.returncode:
            raise RevisionError(f"git reads no repository at {self._folder}: {git_message(remotes)}")
        place = "refs/remotes/origin/" if remotes.stdout else "refs/heads/"  # of a repository without a remote its own
        target = next(filter(None, map(os.environ.get, TARGETS)), "")
        for branch in filter(None, (target, "HEAD", "main", "master")):
            found = run_git(self._folder, "merge-base", "HEAD", f"{place}{branch}")
            if found.returncode == 0:
                commit = found.stdout.decode().strip()
                files = run_git(self._folder, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
                pins = run_git(self._folder, "cat-file", "blob", f"{commit}:./{pin.FILE}")  # empty without the file
                names = map(PurePosixPath, [*os.fsdecode(files.stdout).split("\0"), *pin.pinned(pins.stdout)])
                name = f"{commit[:12]} of {place.removeprefix('refs/remotes/').removeprefix('refs/heads/')}{branch}"
                return name, frozenset(filter(None, map(cubin_named, names)))
        raise RevisionError(
            "git knows no commit in common with origin/HEAD, origin/main or origin/master: in CI check out with "
            "fetch-depth: 0 (GitLab: GIT_DEPTH: 0)"
        )
