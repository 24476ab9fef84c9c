"""Which revision a callable is paired with: that of ``--gpuperf-against``, or the commit of its record.

And whether the callable may have changed since, by the files that git calls changed.  A callable has no machine code
that would tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.context import stash
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import Revision
from pytest_gpuperf.process.repository import changed_since
from pytest_gpuperf.revision.imports import imported_among
from pytest_gpuperf.revision.worktree import check_out
from pytest_gpuperf.run import Run

PROSE = frozenset({".md", ".rst"})
RECORD_ANEW = "record it with pytest --update-baselines=all"
CHECKED_OUT: pytest.StashKey[dict[str, Revision | str]] = pytest.StashKey()
"""Revisions of records by their commit, or why there is none."""
CHANGED: pytest.StashKey[dict[str, frozenset[Path] | None]] = pytest.StashKey()
"""Files that differ, by the commit; None where git cannot tell."""


class NotPaired(Exception):
    """A callable cannot run beside its baseline: why, and what to do."""


def revision_for(worker: Run, key: Key) -> Revision:
    """The revision to pair a callable with, checked out.  Raises ``NotPaired``."""
    if worker.revision is not None:
        return worker.revision
    commit = recorded_commit(worker, key)
    known = worker.config.stash.setdefault(CHECKED_OUT, {})
    if commit not in known:
        try:
            known[commit] = check_out(worker.config, commit, worker.targets)
        except RevisionError as problem:
            known[commit] = f"the commit of its record cannot be checked out: {problem}"
    found = known[commit]
    if isinstance(found, str):
        raise NotPaired(found)
    return found


def recorded_commit(worker: Run, key: Key) -> str:
    """The commit of the record's latest rounds.  Raises ``NotPaired``."""
    baseline = worker.store.time(worker.device.facts.slug, key)
    latest = baseline.sessions[-1] if baseline is not None and baseline.sessions else None
    if latest is None or not latest.commit:
        raise NotPaired(f"its record names no commit: in a git repository, after a commit, {RECORD_ANEW}")
    if latest.dirty:
        raise NotPaired(f"it was recorded with uncommitted changes to {latest.commit[:12]}: commit, then {RECORD_ANEW}")
    return latest.commit


def may_have_changed(worker: Run, key: Key) -> bool:
    """Whether the workload may run other code than the commit of its record; True where nothing tells.

    A changed Python file counts if it was imported, unless it holds other tests; any other file counts, but for prose
    and baselines.
    """
    try:
        commit = recorded_commit(worker, key)
    except NotPaired:
        return True
    known = worker.config.stash.setdefault(CHANGED, {})
    if commit not in known:
        known[commit] = changed_since(worker.config.rootpath, commit)
    changed = known[commit]
    return changed is None or _matters(worker, key, changed)


def _matters(worker: Run, key: Key, changed: Iterable[Path]) -> bool:
    baselines = Path(os.path.realpath(worker.options.baselines))
    code = [path for path in changed if path.suffix not in PROSE and not path.is_relative_to(baselines)]
    python = frozenset(path for path in code if path.suffix == ".py")
    if len(code) > len(python):
        return True
    loaded = imported_among(python)
    return bool(loaded) and not loaded <= _of_other_tests(worker, key)


def _of_other_tests(worker: Run, key: Key) -> set[Path]:
    finding = worker.config.stash.get(stash.FINDING, None)
    modules = {node_id.partition("::")[0] for node_id in finding.tests} if finding is not None else set()
    return {Path(os.path.realpath(worker.config.rootpath / module)) for module in modules - {key.module}}
