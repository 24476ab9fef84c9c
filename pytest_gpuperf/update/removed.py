"""The records that ``--update-baselines=all`` removes: their tests, or their workloads, are gone.

A run answers for the test files below its paths, as ``session.missing`` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.tests_found import is_deleted
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence


def records_removed(
    config: pytest.Config, store: BaselineStore, evidence: Iterable[TestEvidence]
) -> set[tuple[str, Key]] | None:
    """Records to remove, by target; None of a run that was not asked for everything, or did not come to its end.

    Nothing is removed where a test was deselected, or a file was not collected: its tests are unknown.
    """
    finding = config.stash.get(stash.FINDING, None)
    found = finding.found if finding is not None else None
    if finding is None or found is None or config.stash[stash.OPTIONS].update != "all":
        return None
    if found.failed or found.skipped or found.selected != found.tests or not found.tests <= finding.ends.keys():
        return None
    try:
        records = [(target, key) for target in store.targets() for key in store.keys(target)]
    except BaselineError:  # which the tests and the end of the run tell
        return None
    had = dict[tuple[str, str], set[Key]]()
    for test in evidence:
        archs = {arch for work in test.workloads for arch in work.static}
        for target in archs | ({test.device.slug} if test.device is not None else set()):
            if test.whole:
                had[target, test.node_id] = {work.key for work in test.workloads}
    return {
        (target, key)
        for target, key in records
        if (is_deleted(config, found, key) and _without_parameters(key) not in found.tests)
        or key not in had.get((target, key.node_id), {key})
    }


def _without_parameters(key: Key) -> str:
    """The test where it has none, since they may be those of another machine."""
    return f"{key.node_id.partition('[')[0]}[NOTSET]"


def removed_line(removed: Collection[tuple[str, Key]]) -> str:
    """``removed 3 records of tests that are gone: ...``"""
    keys = sorted({key for _, key in removed})
    return f"removed the records of {numbered(len(keys), 'workload')} that no test has any more: {first_of(keys, 3)}"
