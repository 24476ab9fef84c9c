"""Missing records: recorded minus judged, and the cause of each."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from pytest_gpuperf.context.tests_found import Ended, TestsFound, covers
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.session.missing import (
    FILE_GONE,
    LeftOut,
    Missing,
    MissingCause,
    RecordedWork,
    RunSeen,
    asks_for_gpu,
    missing_records,
)
from pytest_gpuperf.session.note_missing import missing_lines

MODULE, TEST = "suite/test_a.py", "test_x"
NODE, OTHER = f"{MODULE}::{TEST}", f"{MODULE}::test_y"
PASSED, SKIPPED = Ended("passed"), Ended("skipped", "flaky")
FULL = RunSeen(
    found=TestsFound(
        tests=frozenset({NODE, OTHER}), selected=frozenset({NODE, OTHER}), modules=frozenset({MODULE}),
    ),
    ends={NODE: PASSED, OTHER: PASSED}, reported={NODE}, stopped=(), targets={"sm_90", "nvidia-h200"}, has_gpu=True,
    searches=lambda module: covers(["suite"], module), exists=lambda module: True,
)  # fmt: skip


def record(node: str = NODE, target: str = "sm_90") -> RecordedWork:
    module, _, test = node.partition("::")
    return RecordedWork(Key(module=module, test=test, workload="scan"), target, "static")


def state(one: RecordedWork, **changes: Any) -> Missing | str | None:
    """``left out``, or what is missing; ``changes`` are of the full run, those of what it found included."""
    found = {name: changes.pop(name) for name in list(changes) if name in TestsFound.__struct_fields__}
    run = dataclasses.replace(FULL, found=msgspec.structs.replace(FULL.found, **found), **changes)
    missing, left_out = missing_records([one], set(), run)
    assert not (missing and left_out)
    assert left_out in ([], [LeftOut(one)])
    return missing[0] if missing else "left out" if left_out else None


GONE = {"tests": frozenset({OTHER}), "selected": frozenset({OTHER})}
NO_FILE = {"tests": frozenset(), "selected": frozenset(), "modules": frozenset()}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param(GONE, MissingCause.DELETED, id="deleted test"),
        pytest.param({**NO_FILE, "exists": lambda module: False}, MissingCause.DELETED, id="deleted file"),
        pytest.param(NO_FILE, "left out", id="file there, and not collected"),
        pytest.param({**GONE, "searches": lambda module: False}, "left out", id="another path"),
        pytest.param({"selected": frozenset({OTHER})}, "left out", id="deselected"),
        pytest.param({"ends": {NODE: SKIPPED}, "reported": ()}, MissingCause.SKIPPED, id="skipped"),
        pytest.param({"ends": {NODE: SKIPPED}}, MissingCause.SKIPPED, id="skipped between its workloads"),
        pytest.param({"ends": {NODE: Ended("xfailed")}}, MissingCause.SKIPPED, id="failed as expected"),
        pytest.param({**NO_FILE, "skipped": {MODULE: "flaky"}}, MissingCause.SKIPPED, id="skipped file"),
        pytest.param({"ends": {NODE: Ended("skipped", "no GPU")}}, MissingCause.SKIPPED, id="no GPU, and there is one"),
        pytest.param({"reported": ()}, MissingCause.NOT_REACHED, id="early return"),
        pytest.param({"ends": {}}, MissingCause.NOT_REACHED, id="ended by pytest.exit"),
        pytest.param({"ends": {}, "cut_short": True}, "left out", id="-x"),
        pytest.param({"ends": {NODE: Ended("failed")}, "reported": ()}, None, id="failed"),
        pytest.param({**NO_FILE, "failed": frozenset({MODULE})}, None, id="file cannot be collected"),
        pytest.param({}, None, id="reported: the test says it itself"),
        pytest.param({"ends": {NODE: SKIPPED}, "stopped": {NODE}}, None, id="stopped: the test says it itself"),
        pytest.param({"reported": (), "targets": {"sm_80"}}, None, id="a target of other runs"),
        pytest.param({**GONE, "targets": {"sm_80"}}, MissingCause.DELETED, id="deleted, of any target"),
    ],
)
def test_cause_of_missing_record(changes: dict[str, Any], cause: MissingCause | str | None) -> None:
    found = state(record(), **changes)
    assert (found.cause if isinstance(found, Missing) else found) == cause


def test_judged_record_is_not_missing() -> None:
    run = dataclasses.replace(FULL, reported=())
    one, other = record(), record(target="nvidia-h200")
    assert missing_records([one, other], {one}, run) == ([Missing(other, MissingCause.NOT_REACHED)], [])


@pytest.mark.parametrize(
    ("reason", "has_gpu", "cause"),
    [
        ("needs a GPU", False, MissingCause.NEEDED_GPU),
        ("needs a GPU", True, MissingCause.SKIPPED),
        ("could not import 'cupy': No module named 'cupy'", False, MissingCause.NEEDED_GPU),
        ("flaky", False, MissingCause.SKIPPED),
    ],
)
def test_skip_for_want_of_gpu(reason: str, has_gpu: bool, cause: MissingCause) -> None:
    assert asks_for_gpu(reason) == (reason != "flaky")
    ends = {NODE: Ended("skipped", reason)}
    assert state(record(), ends=ends, has_gpu=has_gpu) == Missing(record(), cause, reason)


def test_line_of_each_cause() -> None:
    found = [
        Missing(record(), MissingCause.DELETED),
        Missing(record(target="nvidia-h200"), MissingCause.DELETED),
        Missing(record("suite/test_b.py::test_z"), MissingCause.DELETED, FILE_GONE),
        Missing(record(OTHER), MissingCause.SKIPPED, "flaky"),
    ]
    deleted, skipped = missing_lines(found)
    assert deleted.startswith(
        f"2 workloads NOT-MEASURED on sm_90, nvidia-h200: its test was deleted or renamed: {NODE}, suite/test_b.py "
        "(the file is gone). To do: restore it, or "
    )
    assert skipped.startswith(f"1 workload NOT-MEASURED on sm_90: its test was skipped, or failed as expected: {OTHER}")
    assert "(flaky). To do: take the skip away" in skipped


@pytest.mark.parametrize(
    ("places", "covered"),
    [(["."], True), (["suite"], True), ([MODULE], True), (["suite/test_b.py"], False), (["sui"], False), ([], False)],
)
def test_paths_that_cover_a_module(places: list[str], covered: bool) -> None:
    assert covers(places, MODULE) == covered
