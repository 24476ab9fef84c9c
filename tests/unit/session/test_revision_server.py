"""What the process that runs another revision's tests leaves for the run that compares."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import H200, MODULE, TEST, Run, workload

from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import FOUND_FILE, RevisionFound, RevisionTask
from pytest_gpuperf.results import Ended, Results
from pytest_gpuperf.revision.foreign_files import FOREIGN
from pytest_gpuperf.revision.server import leave_evidence

NODE = f"{MODULE}::{TEST}"


@pytest.fixture
def task(tmp_path: Path) -> RevisionTask:
    return RevisionTask(folder=tmp_path, others=(), tree=tmp_path, reading=3, writing=4, evidence=True)


@pytest.fixture
def there(run: Run) -> Run:
    """A process whose one test has passed."""
    run.collected(TEST).ends[NODE] = Ended("passed")
    foreign: Any = SimpleNamespace(lines=lambda: ("a file",))
    run.config.stash[FOREIGN] = foreign
    return run


def left(run: Run, task: RevisionTask, *tests: TestEvidence) -> RevisionFound:
    results = run.worker.results
    results.by_test = {one.node_id: one for one in tests}
    leave_evidence(run.config, results, task)
    return msgspec.json.decode((task.folder / FOUND_FILE).read_bytes(), type=RevisionFound)


def test_the_evidence_of_its_tests_and_the_gpu_that_one_of_them_ran_on(there: Run, task: RevisionTask) -> None:
    tests = (
        TestEvidence(module=MODULE, test=TEST, workloads=(workload(),)),
        TestEvidence(module=MODULE, test="test_b", device=H200),
    )
    assert left(there, task, *tests) == RevisionFound(
        tests=tests, lacking={}, failed=frozenset(), device=H200, foreign=("a file",), collected=frozenset({MODULE})
    )
    assert left(there, task, tests[0]).device is None


def test_nothing_is_left_of_a_process_that_was_ended_before_its_first_test(there: Run, task: RevisionTask) -> None:
    there.collected().found = None
    leave_evidence(there.config, Results(), task)
    assert not (task.folder / FOUND_FILE).exists()


def test_why_tests_and_files_left_no_evidence(there: Run, task: RevisionTask) -> None:
    ends = there.collected(
        "test_a", "test_b", "test_c", "test_d", failed=frozenset({"broken.py"}), skipped={"old.py": "too old"}
    ).ends
    ends[f"{MODULE}::test_a"] = Ended("passed")
    ends[f"{MODULE}::test_b"] = Ended("skipped", "no GPU")
    ends[f"{MODULE}::test_c"] = Ended("failed", "assert 1 == 2")
    ends[f"{MODULE}::test_e"] = Ended("xfailed", "bug 7")
    ends[f"{MODULE}::test_f"] = Ended("skipped", "static only: no driver")
    static = TestEvidence(module=MODULE, test="test_f", status="static only", workloads=(workload(),))
    found = left(there, task, static)
    assert found.failed == {f"{MODULE}::test_c"}
    assert found.lacking == {
        "broken.py": "its file could not be collected there",
        "old.py": "its file skips itself there: too old",
        f"{MODULE}::test_b": "its test is skipped there: no GPU",
        f"{MODULE}::test_c": "its test fails there: assert 1 == 2",
        f"{MODULE}::test_d": "the run of its tests was ended there before it was over",
        f"{MODULE}::test_e": "its test was expected to fail there, and did: bug 7",
    }
