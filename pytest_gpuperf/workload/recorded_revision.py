"""Which revision a callable is paired with: that of ``--gpuperf-against``, or the commit of its record."""

from __future__ import annotations

import contextlib

import pytest

from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.context.worktree import described, repository_of, working_trees, worktree_of
from pytest_gpuperf.model.evidence import Key, Session
from pytest_gpuperf.model.revision import Revision

ALONE = "a callable has no machine code of its own that could be run again"
CHECKED_OUT: pytest.StashKey[dict[str, Revision | str]] = pytest.StashKey()
"""Revisions of records by their commit, or why there is none."""


class NotPaired(Exception):
    """Why there are no blocks of a callable and of what it was; never a reason to pass it."""


def opponent_revision(worker: Worker, key: Key) -> Revision:
    """The revision to pair a callable with, checked out.  Raises ``NotPaired``."""
    if worker.revision is not None:
        return worker.revision
    commit = recorded_commit(worker, key)
    known = worker.config.stash.setdefault(CHECKED_OUT, {})
    if commit not in known:
        known[commit] = _checked_out(worker, commit)
    found = known[commit]
    if isinstance(found, str):
        raise NotPaired(found)
    return found


def recorded_commit(worker: Worker, key: Key) -> str:
    """The commit of the record's latest rounds.  Raises ``NotPaired``."""
    store, target = worker.store, worker.device.facts.slug
    baseline = store.time(target, key)
    named = {one.session for one in baseline.rounds} if baseline is not None else set()
    sessions: list[Session] = [one for one in store.sessions(target, key.module) if one.id in named]
    latest = max(sessions, key=lambda one: one.date, default=None)
    if latest is None or not latest.commit:
        raise NotPaired(f"{ALONE}, and its record does not say at which commit it was taken")
    if latest.dirty:
        raise NotPaired(f"{ALONE}, and it was recorded with changes beyond {latest.commit[:12]}")
    trust, commit = worker.trust, latest.commit
    if distrust := trust.why_not_run(commit) or trust.why_not_recorded_at(store.root, target, key, commit):
        raise NotPaired(f"{ALONE}, and under CI {distrust}: --gpuperf-trust-cubins runs it")
    return commit


def _checked_out(worker: Worker, commit: str) -> Revision | str:
    """Its worktree, held until the end of this process's run; why there is none, if there is none."""
    config = worker.config
    held = contextlib.ExitStack()
    try:
        top = repository_of(config.rootpath).top
        tree = held.enter_context(worktree_of(config.rootpath, GitFolder(top).commit(commit)))
        others = tuple(one for one in working_trees(top) if one != tree)
        name = described(top, commit)
    except RevisionError as problem:
        held.close()
        return f"{ALONE}, nor can the commit of its record: {problem}"
    config.add_cleanup(held.close)
    return Revision(commit=commit, name=name, archs=worker.targets, top=top, others=others, tree=tree)
