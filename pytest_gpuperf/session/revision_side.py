"""What the process that runs another revision's tests leaves for the run that started it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.foreign_code import foreign_code
from pytest_gpuperf.context.revision_imports import imported
from pytest_gpuperf.context.tests_found import Ended, TestsFound
from pytest_gpuperf.model.revision import RevisionFound
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.results import Results
from pytest_gpuperf.run import Run

FOUND_FILE = "found.json"


def leave_revision(config: pytest.Config, book: Results, task: RevisionTask) -> None:
    """Write what this process found for the run that started it; nothing if it was ended before its first test."""
    finding = config.stash[stash.FINDING]
    if finding.found is None:
        return
    early = frozenset(one.node_id for one in book.evidence if one.status != "complete" and one.workloads)
    found = RevisionFound(
        tests=tuple(book.evidence), lacking=_lacking(finding.found, finding.ends, book.failures, early),
        collected=finding.found.modules,
        failed=frozenset(book.failures), leaks=tuple(_leaks(config, task, stash.run_of(config))),
        device=next((one.device for one in book.evidence if one.device is not None), None),
        modules=sum(Path(file).is_relative_to(task.tree) for file in imported().values()),
    )  # fmt: skip
    write_whole(task.folder / FOUND_FILE, msgspec.json.encode(found))


def _lacking(
    found: TestsFound, ends: Mapping[str, Ended], failures: Mapping[str, str], early: Set[str]
) -> dict[str, str]:
    """Why tests and files left no evidence, or not all of it.

    ``early`` are those that came to some of their kernels without a GPU, which pytest counts as skipped.
    """
    lacking = dict.fromkeys(found.failed, "its file could not be collected there")
    lacking |= {node: f"its file skips itself there: {why}" for node, why in found.skipped.items()}
    lacking |= dict.fromkeys(found.tests - found.selected, "its test is left out there, by settings or hooks")
    lacking |= dict.fromkeys(found.selected - ends.keys(), "the run of its tests was ended there before it was over")
    for node, end in ends.items():
        if end.how == "skipped" and node not in early:
            lacking[node] = f"its test is skipped there: {end.reason}"
        elif end.how == "xfailed":
            lacking[node] = f"its test was expected to fail there, and did: {end.reason}"
    return lacking | {node: f"its test fails there: {why}" for node, why in failures.items()}


def _leaks(config: pytest.Config, task: RevisionTask, worker: Run) -> list[str]:
    lines = foreign_code(config, task.others, task.tree)
    for here in _of_working_tree(worker.visited, task):
        lines.append(
            f"a conftest or a test changed the current folder to {here}, of the working tree: let it go to a folder "
            "beside its own file (Path(__file__).parent)"
        )
    for place in _of_working_tree(worker.sources, task):
        lines.append(
            f"a kernel was compiled from {place}, of the working tree: name sources and headers relative to the test "
            "file"
        )
    return lines


def _of_working_tree(places: Iterable[Path], task: RevisionTask) -> list[Path]:
    inside = (place for place in places if any(map(place.is_relative_to, task.others)))
    return sorted(place for place in inside if not place.is_relative_to(task.tree))
