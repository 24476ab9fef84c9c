"""A callable whose code changed since its record is paired with the record's commit, and told from one that did not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import CALLABLE, Suite

TEST = "from steps_of_work import STEPS\n" + CALLABLE.format(steps="(200, STEPS, 200)", more="")
OTHER_TEST = """
def test_nothing():
    pass
"""
RECORDING = ("--update-baselines", "--gpuperf-disturbed")


@pytest.fixture
def recorded(gpu_suite: Suite) -> Suite:
    """A callable on record, in a repository with other files."""
    (gpu_suite.path / ".hidden").mkdir()
    for name, text in {
        ".gitignore": "__pycache__\n.gpuperf\n", "steps_of_work.py": "STEPS = 300\n", "unused.py": "",
        "test_other.py": OTHER_TEST, "test_suite.py": TEST, "README.md": "", ".hidden/ci.yml": "",
    }.items():  # fmt: skip
        gpu_suite.write(name, text)
    commit(gpu_suite.path)
    gpu_suite.run(*RECORDING)
    assert (gpu_suite.path / "baselines/simulated-gpu/test_suite.jsonl").exists()
    commit(gpu_suite.path, "Baselines")
    return gpu_suite


def gated(suite: Suite, *flags: str) -> tuple[int, str]:
    result = suite.run("--gpuperf", "-rA", *flags, subprocess=True)
    return int(result.ret), result.stdout.str()


NOTES_PARTNERS = """

def pytest_configure(config):
    if task_of(config).get("type") == "revision":
        __import__("pathlib").Path(__import__("os").environ["PARTNERS"]).touch()
"""


@pytest.fixture
def partner(recorded: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the process of another revision makes when it starts."""
    recorded.write("conftest.py", (recorded.path / "conftest.py").read_text() + NOTES_PARTNERS)
    commit(recorded.path)
    recorded.run("--update-baselines=all", "--gpuperf-disturbed")
    commit(recorded.path, "Baselines")
    monkeypatch.setenv("PARTNERS", str(tmp_path / "partner"))
    return tmp_path / "partner"


@pytest.mark.parametrize("committed", [False, True])
def test_small_loss_is_red_by_pairs_of_processes(recorded: Suite, committed: bool) -> None:
    recorded.write("steps_of_work.py", "STEPS = 330\n")
    if committed:
        commit(recorded.path, "Slower")
    status, said = gated(recorded)
    assert status == 1, said
    assert "steps  SLOWER" in said
    assert "slower, by 4 pairs of processes: x1.03" in said


def test_equal_code_after_a_change_is_the_same(recorded: Suite, partner: Path) -> None:
    recorded.write("steps_of_work.py", "STEPS = 300  # as before\n")
    status, said = gated(recorded)
    assert status == 0, said
    assert "1 SAME, 2 UNCHANGED" in said
    assert partner.exists()


@pytest.mark.parametrize(
    "file", ["", "unused.py", "test_other.py", "README.md", ".hidden/ci.yml", "baselines/gpuperf.toml"]
)
def test_callable_whose_files_did_not_change_is_unchanged_without_another_process(
    recorded: Suite, partner: Path, file: str
) -> None:
    path = recorded.path / file
    if file:
        recorded.write(file, (path.read_text() if path.exists() else "") + "\n")
    status, said = gated(recorded)
    assert status == 0, said
    assert "3 workloads: 3 UNCHANGED" in said
    assert not partner.exists()


def test_changed_file_that_is_no_python_pairs(recorded: Suite, partner: Path) -> None:
    recorded.write("other.cu", (recorded.path / "other.cu").read_text() + "\n")
    status, said = gated(recorded)
    assert status == 0, said
    assert "1 SAME, 2 UNCHANGED" in said
    assert partner.exists()


@pytest.mark.parametrize(
    ("steps", "status", "lines"),
    [
        (1000, 1, ["steps  SLOWER *", "*slower against its record by more than 10 %, in two processes; not paired: *"]),
        (320, 0, ["*steps  INCONCLUSIVE *", "*x1.02* of its recorded time, which proves nothing below x1.10; not *"]),
    ],
)
def test_callable_without_history_is_compared_with_its_record(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch, steps: int, status: int, lines: list[str]
) -> None:
    shallow = recorded.path.parent / "shallow"
    shutil.rmtree(shallow, ignore_errors=True)
    git(recorded.path, "clone", "-q", "--depth=1", f"file://{recorded.path}", str(shallow))
    (shallow / "steps_of_work.py").write_text(f"STEPS = {steps}\n")
    monkeypatch.chdir(shallow)
    result = recorded.run("--gpuperf", "-rA", "--rootdir=.", subprocess=True)
    assert result.ret == status, result.stdout.str()
    result.stdout.fnmatch_lines(lines)
    assert "fetch-depth: 0" in result.stdout.str()
    assert "gpuperf-budget" not in result.stdout.str()
