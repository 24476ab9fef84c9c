"""The one rule of trust: under CI no stored cubin is launched that the default branch lacks.

A cubin is machine code that nobody can review, so one that a change brought along is not launched.  Comparing figures
needs no trust, and what was compiled by this run is no stored cubin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.git_objects import RevisionError, is_shallow, run_git, said
from pytest_gpuperf.baselines.layout import cubin_named
from pytest_gpuperf.options import Options

TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""Variables in which GitHub and GitLab name the branch that a change is meant for."""
_DEEPER = "in CI check out with fetch-depth: 0 (GitLab: GIT_DEPTH: 0)"


class BaselineTrust:
    """Of one process; git is asked at the first question that needs it, once."""

    def __init__(self, options: Options, folder: Path, *, compiled_here: bool = False) -> None:
        """``folder`` lies in the repository of the change under test.

        ``compiled_here``: what stands for baselines was compiled by this run, from the sources of a revision.
        """
        self._everything = not options.ci or compiled_here
        self._folder = folder

    def why_not_launched(self, sha256: str) -> str:
        """Why the stored cubin of this hash is not to be launched, in the same words for all; empty if it may be."""
        if self._everything:
            return ""
        try:
            name, cubins = self._of_default_branch
        except RevisionError as problem:
            return f"nothing tells whether its baseline's cubin came with this change ({problem})"
        return "" if sha256 in cubins else f"its baseline's cubin came with this change (it is not in {name})"

    @cached_property
    def _of_default_branch(self) -> tuple[str, frozenset[str]]:
        """The commit where the change left the default branch, in words, and SHA-256 of the cubins that it has.

        Raises ``RevisionError`` where there is no git, no repository, or no such branch.
        """
        listed = run_git(self._folder, "for-each-ref", "--format=%(refname)", "refs/remotes", "refs/heads")
        if listed.returncode:
            raise RevisionError(f"{self._folder} is in no git repository that git reads; it says: {said(listed)}")
        refs = os.fsdecode(listed.stdout).splitlines()
        branch = next((ref for ref in _default_branches(refs) if ref in refs), "")
        if not branch:
            shallow = "this clone is shallow and " if is_shallow(self._folder) else ""
            raise RevisionError(f"{shallow}git knows no origin/HEAD, origin/main or origin/master: {_DEEPER}")
        short = quoted(branch.removeprefix("refs/remotes/").removeprefix("refs/heads/"))
        found = run_git(self._folder, "merge-base", "HEAD", branch)
        if found.returncode:
            raise RevisionError(f"HEAD and {short} have no commit in common: {_DEEPER}")
        commit = found.stdout.decode("ascii", "replace").strip()
        files = run_git(self._folder, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        if files.returncode:
            raise RevisionError(f"git cannot list {commit[:12]} ({said(files)}). Try git fsck")
        names = map(PurePosixPath, os.fsdecode(files.stdout).split("\0"))
        return f"{commit[:12]} of {short}", frozenset(filter(None, map(cubin_named, names)))


def _default_branches(refs: list[str]) -> Iterator[str]:
    """Full names of what may be the default branch, the likeliest first; of a repository without a remote its own."""
    target = next(filter(None, map(os.environ.get, TARGETS)), "")
    for name in filter(None, (target, "HEAD", "main", "master")):
        yield f"refs/remotes/origin/{name}"
    if not any(ref.startswith("refs/remotes/") for ref in refs):
        yield from (f"refs/heads/{name}" for name in (target, "main", "master") if name)
