"""Checkouts of other revisions: git worktrees below the cache folder, for one run at a time, kept for the next.

A worktree is locked while a run uses it, by the operating system: a run that is killed leaves one that the next takes
over.  There are as many as runs were under way at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import filelock
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.baselines.git_objects import NO_HOOKS, GitFolder, RevisionError, git_message, is_shallow, run_git
from pytest_gpuperf.compile.cache import default_folder, make_private
from pytest_gpuperf.model.task import Revision
from pytest_gpuperf.options import HERE

MERGE_BASE = "merge-base:"
"""Before a revision: the commit that it and the present one descend from."""


class Repository(NamedTuple):
    """The git repository around a folder."""

    top: Path
    """Top level of the working tree, links resolved."""
    common: Path
    """Where git keeps it: the same for all of its worktrees."""


def repository_of(folder: Path) -> Repository:
    """Raises ``RevisionError`` where there is no repository, or no git."""
    found = run_git(folder, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
    lines = os.fsdecode(found.stdout).splitlines()
    if found.returncode or len(lines) != 2:
        raise RevisionError(
            f"git reads no working tree at {folder} ({git_message(found)}), so there is no revision to compare with. "
            "To do: start pytest in the repository of the tests"
        )
    return Repository(*(Path(line).resolve() for line in lines))


def working_trees(folder: Path) -> tuple[Path, ...]:
    """Tops of all working trees of the repository, links resolved.  Raises ``RevisionError``."""
    listed = run_git(folder, "worktree", "list", "--porcelain")
    names = [line.partition(" ") for line in os.fsdecode(listed.stdout).splitlines()]
    found = (Path(path).resolve() for word, _, path in names if word == "worktree")
    return tuple(dict.fromkeys([repository_of(folder).top, *found]))


def resolve(folder: Path, ref: str) -> str:
    """Full id of the commit that ``ref`` names: a revision, or ``merge-base:main``.  Raises ``RevisionError``."""
    repository = repository_of(folder)
    git = GitFolder(repository.top)
    if not ref.startswith(MERGE_BASE):
        return git.commit(ref)
    other = git.commit(ref.removeprefix(MERGE_BASE))
    found = run_git(repository.top, "merge-base", "HEAD", other)
    if found.returncode:
        shallow = is_shallow(repository.top)
        remedy = "this clone is shallow: in CI check out with fetch-depth: 0" if shallow else "name a commit instead"
        raise RevisionError(f"'{ref}': HEAD and {other[:12]} have no commit in common; {remedy}")
    return found.stdout.decode("ascii", "replace").strip()


def described(folder: Path, commit: str) -> str:
    """``3f9a2c1b04de (2026-11-20, Unroll the inner loop)``; the id alone if git does not tell."""
    shown = run_git(folder, "show", "-s", "--format=%cs, %s", commit)
    text = shown.stdout.decode("utf-8", "replace").strip()
    return f"{commit[:12]} ({text[:80]})" if shown.returncode == 0 and text else commit[:12]


def check_out(config: pytest.Config, ref: str, archs: tuple[str, ...]) -> Revision:
    """The revision ``ref`` in a worktree that this process holds until the end of its run.  Raises ``RevisionError``.

    Another environment alone has the working tree itself.  ``archs`` are the architectures that its machine code is
    to be made for.
    """
    root, options = config.rootpath.resolve(), config.stash[stash.OPTIONS]
    top = repository_of(root).top
    if options.against == HERE:
        return Revision(commit=ref, name=f"{ref} in {options.against_env}", archs=archs, top=top, tree=top)
    commit = resolve(root, ref)
    held = contextlib.ExitStack()
    tree = held.enter_context(worktree_of(root, commit))
    config.add_cleanup(held.close)
    return Revision(
        commit=commit, name=described(top, commit), archs=archs, top=top, tree=tree,
        others=tuple(one for one in working_trees(top) if one != tree),
    )  # fmt: skip


@contextlib.contextmanager
def worktree_of(folder: Path, commit: str) -> Iterator[Path]:
    """A worktree of this commit, for this process alone until the end: its top level, links resolved.

    Nothing is in it but what the commit has, and files that git ignores of runs of the same commit before.
    Raises ``RevisionError``.
    """
    repository = repository_of(folder)
    place = default_folder() / ".worktrees" / hashlib.sha256(os.fsencode(repository.common)).hexdigest()[:12]
    with contextlib.ExitStack() as held:
        try:
            make_private(default_folder())
            place.mkdir(parents=True, exist_ok=True)
            tree = next(tree for number in itertools.count() if _is_free(tree := place / str(number), held))
        except OSError as problem:
            raise RevisionError(
                f"no worktree of {commit[:12]} can be made in {place} ({problem.strerror or problem}): set "
                "GPUPERF_CACHE_DIR to a writable folder"
            ) from None
        _check_out(repository, tree, commit)
        update_submodules(repository.top, tree)
        yield tree.resolve()


def _is_free(tree: Path, held: contextlib.ExitStack) -> bool:
    """Whether no other run uses it: then this one does, as long as it is ``held``."""
    try:
        held.enter_context(filelock.FileLock(tree.with_suffix(".lock"), timeout=0))
    except filelock.Timeout:
        return False
    return True


def _check_out(repository: Repository, tree: Path, commit: str) -> None:
    """A worktree that a run of the same commit left is used again.

    One is not removed by ``git worktree prune``, which would forget those whose folders cannot be reached just now.
    """
    if (tree / ".git").is_file() and run_git(tree, "rev-parse", "HEAD").stdout.strip() == commit.encode():
        steps = (*NO_HOOKS, "reset", "--hard", "--quiet"), ("clean", "-ffdq"), ("status", "--porcelain")
        done = [run_git(tree, *step) for step in steps]
        if not any(one.returncode for one in done) and not done[-1].stdout:  # as of a file in a submodule
            return
    shutil.rmtree(tree, ignore_errors=True)  # git forgets it as it adds the next in its place
    added = run_git(repository.top, *NO_HOOKS, "worktree", "add", "--detach", "--force", "--force", str(tree), commit)
    if added.returncode:
        shutil.rmtree(tree, ignore_errors=True)
        raise RevisionError(
            f"git cannot check {commit[:12]} out into {tree} ({git_message(added)}). To do: let git write to "
            f"{repository.common}, or free disk space"
        )


def update_submodules(top: Path, tree: Path) -> None:
    """Check out the submodules of ``tree`` that the working tree ``top`` has, from there: no network is needed.

    Raises ``RevisionError`` where one cannot be had.
    """
    listed = run_git(tree, "config", "--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")
    for entry in filter(None, os.fsdecode(listed.stdout).split("\0")):  # submodule.NAME.path<newline>PATH
        variable, path = entry.split("\n", 1)
        name = variable.removesuffix(".path")
        if not (top / path / ".git").exists() or not (tree / path).is_dir():
            continue
        source = ("-c", "protocol.file.allow=always", "-c", f"{name}.url={top / path}")
        done = run_git(tree, *NO_HOOKS, *source, "submodule", "update", "--init", "--force", "--", path)
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise RevisionError(
                f"the submodule {path} cannot be checked out at its commit of that revision ({last}). To do: "
                f"git -C {top / path} fetch --all"
            )
        update_submodules(top / path, tree / path)
