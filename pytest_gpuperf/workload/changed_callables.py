"""Whether what a callable runs may have changed since the commit of its record, by the files that git calls changed.

A callable has no machine code that would tell.  Files that cannot matter are left out, and what is left is no proof
that it changed: only a reason to run it beside what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.repository import changed_since
from pytest_gpuperf.context.revision_imports import imported_among
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.workload.recorded_revision import NotPaired, recorded_commit

PROSE = frozenset({".md", ".rst"})
CHANGED: pytest.StashKey[dict[str, frozenset[Path] | None]] = pytest.StashKey()
"""Files that differ, by the commit; None where git cannot tell."""


def may_have_changed(worker: Worker, key: Key) -> bool:
    """Whether the workload may run other code than the commit of its record; False where it names none.

    A changed Python file counts if it was imported, unless it holds other tests; any other file counts, prose,
    baselines and what is hidden aside.  Where git cannot tell, as in a shallow clone, it may have.
    """
    try:
        commit = recorded_commit(worker, key)
    except NotPaired:
        return False
    known = worker.config.stash.setdefault(CHANGED, {})
    if commit not in known:
        known[commit] = changed_since(worker.config.rootpath, commit)
    changed = known[commit]
    return changed is None or _matters(worker, key, changed)


def _matters(worker: Worker, key: Key, changed: Iterable[Path]) -> bool:
    baselines = Path(os.path.realpath(worker.options.baselines))
    code = [path for path in changed if path.suffix not in PROSE and not path.is_relative_to(baselines)]
    python = frozenset(path for path in code if path.suffix == ".py")
    if len(code) > len(python):
        return True
    loaded = imported_among(python)
    return bool(loaded) and not loaded <= _of_other_tests(worker, key)


def _of_other_tests(worker: Worker, key: Key) -> set[Path]:
    finding = worker.config.stash.get(stash.FINDING, None)
    modules = {node_id.partition("::")[0] for node_id in finding.tests} if finding is not None else set()
    return {Path(os.path.realpath(worker.config.rootpath / module)) for module in modules - {key.module}}
