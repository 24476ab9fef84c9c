"""The project's own state of the baselines: files at the commit where the change under test left the default branch.

What lies there was merged by somebody who may; all else was brought along by the change, whoever wrote it.  Files are
known by their content, so a renamed one is the same.  Branches of a remote are asked for by their full names: what a
change can name is its own branch alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.git_objects import RevisionError, is_shallow, refuse_another_users, run_git, said
from pytest_gpuperf.baselines.layout import RECORDS, cubin_named

TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""Variables in which GitHub and GitLab name the branch that a change is meant for."""
_REMOTE, _LOCAL = "refs/remotes/origin/", "refs/heads/"
_USUAL = ("main", "master")
_DEEPER = "in CI check out with fetch-depth: 0 (GitLab: GIT_DEPTH: 0)"


class ProjectBase(NamedTuple):
    """What git has at that commit."""

    commit: str
    """In full."""
    branch: str
    """Short name of the branch that it is of: ``origin/main``."""
    cubins: frozenset[str]
    """SHA-256 of the machine code in every folder of baselines."""
    records: frozenset[str]
    """Git's ids of the content of its JSON files."""

    @property
    def name(self) -> str:
        """``3f9a2c1b04de of origin/main``"""
        return f"{self.commit[:12]} of {self.branch}"


def project_base(folder: Path, environment: Mapping[str, str] = os.environ) -> ProjectBase:
    """The base of the repository around ``folder``, by a handful of git processes however many baselines there are.

    Raises ``RevisionError`` where there is no git, no repository, or no telling where the change began.
    """
    top = _superproject(folder)
    target = next(filter(None, map(environment.get, TARGETS)), "")
    listed = run_git(top, "for-each-ref", "--format=%(refname)", "refs/remotes", "refs/heads")
    refs = os.fsdecode(listed.stdout).splitlines()
    branches: list[str] = []
    for branch in (ref for ref in _candidates(top, refs, target) if ref in refs):
        branches.append(branch)
        found = run_git(top, "merge-base", "HEAD", branch)
        if found.returncode == 0:
            return _at(top, found.stdout.decode("ascii", "replace").strip(), branch)
    raise RevisionError(_why_none(top, branches, target))


def holds(top: Path, base: ProjectBase, commit: str) -> bool:
    """Whether a full commit id names the base, or one that it descends from.  Raises ``RevisionError``."""
    return descends(top, base.commit, commit)


def descends(top: Path, commit: str, ancestor: str) -> bool:
    """Whether a commit is a descendant of another one, or that one itself.  Raises ``RevisionError``."""
    return run_git(top, "merge-base", "--is-ancestor", ancestor, commit).returncode == 0


def _superproject(folder: Path) -> Path:
    """Top of the outermost repository: a change may point a submodule at a repository of its author's."""
    found = run_git(folder, "rev-parse", "--show-toplevel", "--show-superproject-working-tree")
    lines = os.fsdecode(found.stdout).splitlines()
    if found.returncode or not lines:
        refuse_another_users(folder, found)
        raise RevisionError(f"{folder} is in no git repository with a working tree; git says: {said(found)}")
    return Path(lines[0]) if len(lines) == 1 else _superproject(Path(lines[1]))


def _candidates(top: Path, refs: list[str], target: str) -> Iterator[str]:
    """Full names of what may be the default branch, the likeliest first.

    Of a repository without a remote it is one of its own: main, master or, where no service names the target, the
    only one.  A commit that was fetched by its id alone has none.
    """
    names = dict.fromkeys(filter(None, (target, "HEAD", *_USUAL)))
    yield from (f"{_REMOTE}{name}" for name in names)
    if run_git(top, "remote").stdout.strip():
        return
    yield from (f"{_LOCAL}{name}" for name in names if name != "HEAD")
    own = [ref for ref in refs if ref.startswith(_LOCAL)]
    if len(own) == 1 and not target:
        yield own[0]


def _at(top: Path, commit: str, branch: str) -> ProjectBase:
    listed = run_git(top, "ls-tree", "-r", "-z", "--full-tree", commit)
    if listed.returncode:
        raise RevisionError(f"git cannot list {commit[:12]} ({said(listed)}). Try git fsck")
    cubins, records = set(), set()
    for line in os.fsdecode(listed.stdout).split("\0"):
        head, _, name = line.partition("\t")
        if name.endswith(RECORDS):
            records.add(head.split(" ")[2])
        elif sha256 := cubin_named(PurePosixPath(name)):
            cubins.add(sha256)
    short = branch.removeprefix("refs/remotes/").removeprefix(_LOCAL)
    return ProjectBase(commit, quoted(short), frozenset(cubins), frozenset(records))


def _why_none(top: Path, branches: list[str], target: str) -> str:
    if is_shallow(top):
        return f"this clone is shallow and does not reach to the default branch: {_DEEPER}"
    if run_git(top, "rev-parse", "--verify", "HEAD").returncode:
        return "the repository has no commit yet: commit the baselines"
    if branches:
        return f"HEAD and {quoted(branches[0])} have no commit in common: {_DEEPER}"
    wanted = f"origin/{quoted(target)}" if target else "origin/HEAD, origin/main or origin/master"
    return f"git knows no {wanted}: fetch the default branch, {_DEEPER}"
