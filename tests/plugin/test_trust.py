"""Baselines that a change brought along: under CI their machine code is not loaded, launched or believed by default.

The change of these tests makes ``work`` slower and brings a record along of code that is slower still: hash, cubin and
times agree with each other, so nothing is wrong with it but where it comes from.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence, write_evidence
from git_samples import commit, git
from recorded_baselines import baselines_of
from suite_under_test import FILES, RECORD, Suite

NODE = "test_suite.py::test_work[1024]"
FORGED, CHANGED = "-DSTEPS=200", "-DSTEPS=150"
COUNTING = """
class Counting(SimulatedGpu):
    def load(self, binary):
        import hashlib, pathlib
        kernel, name = super().load(binary), hashlib.sha256(binary.cubin).hexdigest()
        def note(what):
            with (pathlib.Path(__file__).parent / "noted").open("a") as file:
                file.write(f"{what} {name}\\n")
        def run(*given, **more):
            note("launch")
            return kernel(*given, **more)
        note("load")
        return run

def work("""


@pytest.fixture(scope="session")
def forgery(shared_folder: Path) -> Path:
    """Baselines of code that takes longer than the change's."""
    files = {**FILES, "test_suite.py": FILES["test_suite.py"].replace("-DSTEPS=100", FORGED)}
    return baselines_of(shared_folder / "forgery", files, *RECORD)


@pytest.fixture
def project(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A repository whose only branch, main, has the baselines; its GPU writes down what it loads and launches."""
    recorded.edit("conftest.py", "def work(", COUNTING)
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Counting(")
    recorded.write(".gitignore", "__pycache__\n.gpuperf\nnoted\n")
    commit(recorded.path)
    git(recorded.path, "branch", "-m", "main")
    monkeypatch.setenv("CI", "true")
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    return recorded


@pytest.fixture
def change(project: Suite, forgery: Path) -> Suite:
    """The same with the change checked out, on a branch of its own."""
    git(project.path, "checkout", "-q", "-b", "change")
    bring(project, forgery)
    return project


def bring(project: Suite, forgery: Path) -> None:
    shutil.copytree(forgery, project.path / "baselines", dirs_exist_ok=True)
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    commit(project.path)


def cubin_of(project: Suite) -> str:
    """SHA-256 of the machine code on record."""
    record = read_evidence(project.path / "baselines/simulated-gpu/test_suite.jsonl")["tests"]
    return str(record["test_work[1024]"]["work"]["cubin"])


def counted(project: Suite) -> tuple[int, int]:
    """How often the cubin on record was loaded and launched."""
    noted = project.path / "noted"
    lines = noted.read_text().splitlines() if noted.exists() else []
    assert lines, "the candidate at least was launched"
    return lines.count(f"load {cubin_of(project)}"), lines.count(f"launch {cubin_of(project)}")


def was_launched(project: Suite) -> bool:
    loads, launches = counted(project)
    assert bool(loads) == bool(launches)
    return launches > 0


def test_a_cubin_that_a_change_brought_is_not_launched(change: Suite) -> None:
    """Nothing is comparable then, and that is red under CI, whatever the times on record say."""
    result = change.run("--gpuperf", NODE)
    assert counted(change) == (0, 0)
    result.assert_outcomes(failed=1)
    head = git(change.path, "rev-parse", "main")[:12]
    result.stdout.fnmatch_lines(
        [
            "work  NOT-COMPARABLE  on simulated-gpu (time)  x0.81?  10.* us -> 8.* us",
            "*against the recorded time",
            f"    its baseline's cubin came with this change (it is not in {head} of main), and under CI that is not "
            "launched: compare by --gpuperf-against=merge-base:BRANCH; *",
        ]
    )


def test_outside_of_ci_it_is_launched(change: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI")
    change.run("--gpuperf", NODE)
    assert was_launched(change)


def test_on_the_default_branch_it_is_launched(project: Suite, forgery: Path) -> None:
    bring(project, forgery)
    project.run("--gpuperf", NODE)
    assert was_launched(project)


def test_on_the_default_branch_what_is_not_committed_is_not_launched(project: Suite, forgery: Path) -> None:
    bring(project, forgery)
    git(project.path, "reset", "-q", "--soft", "HEAD~1")
    project.run("--gpuperf", NODE)
    assert counted(project) == (0, 0)


def test_the_cubin_of_the_base_is_launched_for_a_change_too(project: Suite) -> None:
    git(project.path, "checkout", "-q", "-b", "change")
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    commit(project.path)
    result = project.run("--gpuperf", NODE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert was_launched(project)


def test_a_renamed_folder_of_baselines_has_the_cubins_of_the_base(project: Suite) -> None:
    git(project.path, "checkout", "-q", "-b", "change")
    git(project.path, "mv", "baselines", "kept")
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    commit(project.path)
    result = project.run("--gpuperf", "--gpuperf-baselines=kept", NODE)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])


def test_against_a_revision_stands_in_for_it(change: Suite) -> None:
    result = change.run("--gpuperf", "--gpuperf-against=merge-base:main", NODE, subprocess=True)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert counted(change) == (0, 0)
    result.stdout.no_fnmatch_line("*not launched*")


def test_a_shallow_clone_of_a_change_says_what_it_lacks(change: Suite, tmp_path: Path) -> None:
    clone, forged = tmp_path / "clone", cubin_of(change)
    git(change.path, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{change.path}", str(clone))
    result = change.run("--gpuperf", f"--rootdir={clone}", f"{clone}/{NODE}", f"--gpuperf-baselines={clone}/baselines")
    result.stdout.fnmatch_lines(["*nothing tells whether *fetch-depth: 0*"])
    noted = (clone / "noted").read_text()
    assert "launch" in noted
    assert forged not in noted


def test_without_a_repository_nothing_is_launched(change: Suite) -> None:
    shutil.rmtree(change.path / ".git")
    result = change.run("--gpuperf", NODE)
    assert counted(change) == (0, 0)
    result.stdout.fnmatch_lines(["*nothing tells whether *is in no git repository*"])


def test_without_git_nothing_is_launched(change: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_gpuperf.baselines import git_objects

    def not_there(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(git_objects.subprocess, "run", not_there)
    result = change.run("--gpuperf", NODE)
    assert counted(change) == (0, 0)
    result.stdout.fnmatch_lines(["*nothing tells whether *Install git*"])


def test_workers_of_xdist_launch_it_no_more_than_the_run_itself(change: Suite) -> None:
    result = change.run("--gpuperf", "-n", "2", "-k", "test_work", "test_suite.py", subprocess=True)
    result.stdout.fnmatch_lines(["2 workloads: 2 NOT-COMPARABLE"])
    assert counted(change) == (0, 0)


def edit_time(project: Suite, test: str, **fields: object) -> None:
    """Give the time record of a test's workload these fields; ``launch`` is one of its identity."""
    path = project.path / "baselines/simulated-gpu/test_suite.jsonl"
    content = read_evidence(path)
    record = content["tests"][test]["work"]
    if "launch" in fields:
        record["identity"]["launch"] = fields.pop("launch")
    record.update(fields)
    write_evidence(path, content)


@pytest.fixture
def launching(project: Suite) -> Suite:
    """A change is checked out, on a GPU where each block of a launch takes a picosecond besides."""
    project.edit("conftest.py", "return Counting(", "return Counting(block_ns=0.001, ")
    git(project.path, "checkout", "-q", "-b", "change")
    return project


def test_a_launch_that_changed_is_paired_though_the_change_recorded_a_neighbour_anew(launching: Suite) -> None:
    launching.edit("test_suite.py", "grid=8", "grid=9")
    edit_time(launching, "test_work[2048]", bytes=4096)
    commit(launching.path)
    result = launching.run("--gpuperf", NODE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1\.0|0\.9)\d* \[.*\] .* SAME"])
    assert was_launched(launching)
