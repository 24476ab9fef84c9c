"""Baselines that a change brought along: under CI their machine code is not loaded, launched or believed by default.

The change of these tests makes ``work`` slower and brings a record along of code that is slower still: hash, cubin and
times agree with each other, so nothing is wrong with it but where it comes from.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence
from git_samples import commit, git
from suite_under_test import FILES, RECORD, Suite, baselines_of

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


def test_the_cubin_of_the_base_is_launched_for_a_change_too(project: Suite) -> None:
    git(project.path, "checkout", "-q", "-b", "change")
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    commit(project.path)
    result = project.run("--gpuperf", NODE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert was_launched(project)


def test_against_a_revision_stands_in_for_it(change: Suite) -> None:
    result = change.run("--gpuperf", "--gpuperf-against=merge-base:main", NODE, subprocess=True)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert counted(change) == (0, 0)
    result.stdout.no_fnmatch_line("*not launched*")


@pytest.mark.parametrize("flags", [(), ("--gpuperf",)])
def test_code_among_baselines_is_never_collected(recorded: Suite, flags: tuple[str, ...]) -> None:
    elsewhere = recorded.path.parent / f"{recorded.path.name}-elsewhere"
    elsewhere.mkdir()
    code = f"open({str(recorded.path / 'ran')!r}, 'w').close()\ndef test_it(): pass\n"
    (elsewhere / "test_hidden.py").write_text(code)
    (recorded.path / "baselines/cubins/conftest.py").write_text(code)
    (recorded.path / "baselines/cubins/test_hidden.py").write_text(code)
    (recorded.path / "baselines/sm_89").symlink_to(elsewhere)
    result = recorded.run(*flags)
    assert "test_hidden" not in result.stdout.str()
    assert result.ret == 0
    assert not (recorded.path / "ran").exists()
