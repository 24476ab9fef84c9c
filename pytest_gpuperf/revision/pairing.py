"""Pairs a callable with that of another revision, each in its process: the revision, and both halves of the comparison.

The revision is that of ``--gpuperf-against``, or the commit of its baseline.  A callable has no machine code that would
tell whether it may have changed since: the files that git calls changed do.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.device.interface import WorkloadTimer
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import Revision
from pytest_gpuperf.process.repository import changed_since
from pytest_gpuperf.revision.foreign_files import foreign_files_of
from pytest_gpuperf.revision.imports import imported
from pytest_gpuperf.revision.process import RECORD_ANEW, NotPaired, lose, process_for
from pytest_gpuperf.revision.worktree import check_out
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.compare import BUDGETS
from pytest_gpuperf.timing.process_reference import Link, OtherSideLost, ProcessReference, Ready, serve_samples
from pytest_gpuperf.timing.rounds import Workload

REVISIONS: pytest.StashKey[dict[str, Revision | str]] = pytest.StashKey()
"""Revisions by the commit of their record, or the reason why there is none."""
CHANGED: pytest.StashKey[dict[str, frozenset[Path] | None]] = pytest.StashKey()
"""Files that differ, by the commit; None where git cannot tell."""

# --- which revision -----------------------------------------------------------------------------------


def revision_for(run: Run, key: Key) -> Revision:
    """The revision to pair a callable with, checked out.  Raises ``NotPaired``."""
    if run.revision is not None:
        return run.revision
    commit = recorded_commit(run, key)
    known = run.config.stash.setdefault(REVISIONS, {})
    if commit not in known:
        try:
            known[commit] = check_out(run.config, commit, run.targets)
        except RevisionError as problem:
            known[commit] = f"the commit of its baseline cannot be checked out: {problem}"
    found = known[commit]
    if isinstance(found, str):
        raise NotPaired(found)
    return found


def recorded_commit(run: Run, key: Key) -> str:
    """The commit of the record's rounds.  Raises ``NotPaired``."""
    baseline = run.store.time(run.device.facts.slug, key)
    latest = baseline.session if baseline is not None else None
    if latest is None or not latest.commit:
        raise NotPaired(f"its baseline names no commit: commit the tests to git, then {RECORD_ANEW}")
    if latest.dirty:
        raise NotPaired(f"it was recorded with uncommitted changes to {latest.commit[:12]}: commit, then {RECORD_ANEW}")
    return latest.commit


def may_have_changed(run: Run, key: Key) -> bool:
    """Whether the workload may run other code than the commit of its baseline; True where nothing tells.

    A changed Python file counts if it was imported and holds no other tests; any other file, but for prose and
    baselines.
    """
    try:
        commit = recorded_commit(run, key)
    except NotPaired:
        return True
    known = run.config.stash.setdefault(CHANGED, {})
    if commit not in known:
        known[commit] = changed_since(run.config.rootpath, commit)
    changed, baselines = known[commit], Path(os.path.realpath(run.options.baselines))
    if changed is None:
        return True
    code = {path for path in changed if path.suffix not in (".md", ".rst") and not path.is_relative_to(baselines)}
    if not code or any(path.suffix != ".py" for path in code):
        return bool(code)
    others = {run.config.rootpath.resolve() / name for name in run.results.so_far.modules - {key.module}}
    loaded = {Path(os.path.realpath(file)) for file in imported(list(sys.modules)).values()}  # thousands: asked last
    return not code.isdisjoint(loaded - others)


# --- in the process that gates -------------------------------------------------------------------


@contextlib.contextmanager
def reference_for(
    run: Run, key: Key, timer: WorkloadTimer, workload: Workload, budget_s: float
) -> Iterator[ProcessReference]:
    """The revision's callable and this ``workload``.  Raises ``NotPaired``, for what happens inside too."""
    revision = revision_for(run, key)
    try:
        process = process_for(run, revision)
        run.give_memory_back()
        there = process.arrive(key)
        if there.foreign:
            raise NotPaired(f"the revision's process used a file of the other side: {there.foreign[0]}")
        yield ProcessReference(run.device, timer, process.child.link, workload, 60.0 + 2 * BUDGETS * budget_s)
    except OtherSideLost as problem:
        raise NotPaired(lose(run.config, problem)) from None


def let_first(run: Run, key: Key) -> None:
    """Let the other process reach this callable first: who takes its memory second can be 1 % slower for life."""
    with contextlib.suppress(NotPaired, OtherSideLost):  # the comparison will meet the same
        process_for(run, revision_for(run, key)).arrive(key)


# --- in the process of the other revision --------------------------------------------------------


def serve(run: Run, link: Link, name: str, workload: Workload) -> None:
    """Report that the test has reached this callable, and take samples until it may go on.

    Raises ``OtherSideLost`` if the process that gates has ended.
    """
    link.send(Ready(workload=name, foreign=foreign_files_of(run.config).lines()))
    serve_samples(link, run.device, run.timer, workload)
