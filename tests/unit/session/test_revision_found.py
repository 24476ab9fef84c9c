"""What the process that runs another revision's tests leaves for the run that compares."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from run_samples import H200, MODULE, TEST, Run, workload

from pytest_gpuperf.context import foreign_code
from pytest_gpuperf.context.tests_found import Ended
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.revision import RevisionFound
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.results import Results
from pytest_gpuperf.session import revision_side
from pytest_gpuperf.session.revision_side import FOUND_FILE, leave_revision

NODE = f"{MODULE}::{TEST}"


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RevisionTask:
    """Working tree and worktree side by side, and a folder for what is found; no module is imported from either."""
    for name in ("top", "top/within", "evidence"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(revision_side, "imported", dict)
    return RevisionTask(
        folder=tmp_path / "evidence", top=tmp_path / "top", others=(tmp_path / "top",), tree=tmp_path / "top/within"
    )


@pytest.fixture
def there(run: Run) -> Run:
    """A process whose one test has passed."""
    run.collected(TEST).ends[NODE] = Ended("passed")
    run.worker.visited, run.worker.sources = set(), set()
    return run


def left(run: Run, task: RevisionTask, *tests: TestEvidence, failures: Any = None) -> RevisionFound:
    book = Results()
    book.results, book._failed = {one.node_id: one for one in tests}, failures or {}
    leave_revision(run.config, book, task)
    return msgspec.json.decode((task.folder / FOUND_FILE).read_bytes(), type=RevisionFound)


def test_the_evidence_of_its_tests_and_the_gpu_that_one_of_them_ran_on(there: Run, task: RevisionTask) -> None:
    tests = (
        TestEvidence(module=MODULE, test=TEST, workloads=(workload(),)),
        TestEvidence(module=MODULE, test="test_b", device=H200),
    )
    found = left(there, task, *tests)
    assert found == RevisionFound(
        tests=tests, lacking={}, failed=frozenset(), device=H200, leaks=(), modules=0, collected=frozenset({MODULE})
    )  # fmt: skip
    assert left(there, task, tests[0]).device is None


def test_nothing_is_left_of_a_process_that_was_ended_before_its_first_test(there: Run, task: RevisionTask) -> None:
    there.collected().found = None
    leave_revision(there.config, Results(), task)
    assert list(task.folder.iterdir()) == []


def test_why_tests_and_files_left_no_evidence(there: Run, task: RevisionTask) -> None:
    ends = there.collected(
        "test_a", "test_b", "test_c", "test_d", failed=frozenset({"broken.py"}), skipped={"old.py": "too old"}
    ).ends
    ends[f"{MODULE}::test_a"] = Ended("passed")
    ends[f"{MODULE}::test_b"] = Ended("skipped", "no GPU")
    ends[f"{MODULE}::test_c"] = Ended("failed")
    ends[f"{MODULE}::test_e"] = Ended("xfailed", "bug 7")
    ends[f"{MODULE}::test_f"] = Ended("skipped", "static only: no driver")
    static = TestEvidence(module=MODULE, test="test_f", status="static only", workloads=(workload(),))
    found = left(there, task, static, failures={f"{MODULE}::test_c": "assert 1 == 2"})
    assert found.failed == {f"{MODULE}::test_c"}
    assert found.lacking == {
        "broken.py": "its file could not be collected there",
        "old.py": "its file skips itself there: too old",
        f"{MODULE}::test_b": "its test is skipped there: no GPU",
        f"{MODULE}::test_c": "its test fails there: assert 1 == 2",
        f"{MODULE}::test_d": "the run of its tests was ended there before it was over",
        f"{MODULE}::test_e": "its test was expected to fail there, and did: bug 7",
    }


def test_modules_of_the_worktree_are_counted(there: Run, task: RevisionTask, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a": f"{task.tree}/a.py", "b": f"{task.tree}/p/b.py", "re": "/usr/lib/re.py"}
    monkeypatch.setattr(revision_side, "imported", lambda: files)
    assert left(there, task).modules == 2


def test_folders_and_sources_of_the_working_tree_are_leaks(there: Run, task: RevisionTask) -> None:
    there.worker.visited |= {task.tree, task.tree / "tests", Path("/opt"), task.top / "tests"}
    there.worker.sources |= {task.tree / "b.cu", Path("/opt/c.cu"), task.top / "b.cu", task.top / "a.cu"}
    assert left(there, task).leaks == (
        f"a conftest or a test changed the current folder to {task.top / 'tests'}, of the working tree: let it go to a "
        "folder beside its own file (Path(__file__).parent)",
        *(
            f"a kernel was compiled from {task.top / name}, of the working tree: name sources and headers relative to "
            "the test file"
            for name in ("a.cu", "b.cu")
        ),
    )  # fmt: skip


def test_modules_of_the_working_tree_are_leaks(there: Run, task: RevisionTask, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    there.config.getini = lambda name: ["src"] if name == "pythonpath" else None
    monkeypatch.setattr(foreign_code, "foreign_imports", lambda *given: asked.append(given) or ["a leak"])
    assert left(there, task).leaks == ("a leak",)
    assert asked == [(there.config.rootpath.resolve(), ["src"], task.others, task.tree)]


def test_the_side_that_compares_has_leaks_too(there: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from git_samples import commit, git

    (tmp_path / "other.py").touch()
    commit(tmp_path)
    other = tmp_path.with_name(f"{tmp_path.name}-other")
    git(tmp_path, "worktree", "add", "-q", "--detach", str(other))
    module = ModuleType("foreign_module")
    module.__file__ = str(tmp_path / "other.py")
    monkeypatch.setitem(sys.modules, "foreign_module", module)
    assert foreign_code.foreign_here(there.config) == []
    module.__file__ = str(other / "other.py")
    (said,) = foreign_code.foreign_here(there.config)
    assert "foreign_module" in said
