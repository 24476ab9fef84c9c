"""A callable whose code changed since its record is paired with the record's commit, and told from one that did not."""

from __future__ import annotations

import shutil

import pytest
from git_samples import commit, git
from suite_under_test import CALLABLE, Suite

TEST = "from steps_of_work import STEPS\n" + CALLABLE.format(steps="(200, STEPS, 200)", more="")
OTHER_TEST = """
def test_nothing():
    pass
"""
RECORDING = ("--update-baselines", "--gpuperf-force-update")


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
    assert (gpu_suite.path / "baselines/simulated-gpu/test_suite.json").exists()
    commit(gpu_suite.path, "Baselines")
    return gpu_suite


def gated(suite: Suite, *flags: str) -> tuple[int, str]:
    result = suite.run("--gpuperf", "-rA", *flags, subprocess=True)
    return int(result.ret), result.stdout.str()


def assert_pairs_say(suite: Suite, verdict: str) -> None:
    """Rounds alone say NOT-SLOWER of equal code, pairs SAME."""
    status, said = gated(suite)
    assert status == 0, said
    assert f"1 {verdict}, 2 UNCHANGED" in said


@pytest.mark.parametrize("committed", [False, True])
def test_a_loss_that_rounds_do_not_resolve_is_red(recorded: Suite, committed: bool) -> None:
    recorded.write("steps_of_work.py", "STEPS = 315\n")
    if committed:
        commit(recorded.path, "Slower")
    status, said = gated(recorded)
    assert status == 1, said
    assert "SLOWER" in said
    assert "in two processes" in said


def test_equal_code_after_a_change_is_the_same(recorded: Suite) -> None:
    recorded.write("steps_of_work.py", "STEPS = 300  # as before\n")
    assert_pairs_say(recorded, "SAME")


LONG_ROUNDS = """

def pytest_configure(config):
    import time
    import simulated_gpu
    from pytest_gpuperf.workload import gate_process
    timed, paired, began = simulated_gpu.SimulatedTimer.measure, gate_process.pair_processes, []

    def measure(self, slots, cache):
        time.sleep(0.0 if began else 0.3)
        return timed(self, slots, cache)

    def pair_processes(*given, budget_s, **named):
        began.append(time.time())
        print(f"pairs have {budget_s:.3g} s")
        return paired(*given, budget_s=budget_s, **named)

    simulated_gpu.SimulatedTimer.measure, gate_process.pair_processes = measure, pair_processes
"""


def test_rounds_that_took_the_whole_budget_leave_pairs_their_time(recorded: Suite) -> None:
    """Work of milliseconds, of which nobody knew when its rounds were taken that it would be paired."""
    recorded.write("conftest.py", (recorded.path / "conftest.py").read_text() + LONG_ROUNDS)
    status, said = gated(recorded, "--gpuperf-budget=0.6")
    assert status == 0, said
    assert "pairs have 0.45 s" in said
    assert "1 SAME, 2 UNCHANGED" in said


@pytest.mark.parametrize(
    "file", ["unused.py", "test_other.py", "README.md", ".hidden/ci.yml", "baselines/gpuperf.toml"]
)
def test_what_no_callable_runs_pairs_none(recorded: Suite, file: str) -> None:
    path = recorded.path / file
    recorded.write(file, (path.read_text() if path.exists() else "") + "\n")
    assert_pairs_say(recorded, "NOT-SLOWER")


def test_a_changed_file_that_is_no_python_pairs(recorded: Suite) -> None:
    recorded.write("other.cu", (recorded.path / "other.cu").read_text() + "\n")
    assert_pairs_say(recorded, "SAME")


def test_a_clone_without_the_commit_says_what_to_do(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    shallow = recorded.path.parent / "shallow"
    shutil.rmtree(shallow, ignore_errors=True)
    git(recorded.path, "clone", "-q", "--depth=1", f"file://{recorded.path}", str(shallow))
    monkeypatch.chdir(shallow)
    result = recorded.run("--gpuperf", "-rA", "--rootdir=.", subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*NOT-SLOWER*", "*compared with the record alone*fetch-depth: 0*"])


def test_an_older_commit_that_a_change_puts_on_record_stands_for_no_callable(
    gpu_suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project was once slower than the change makes it: paired with that commit, the change would be FASTER."""
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in {
        ".gitignore": "__pycache__\n.gpuperf\n",
        "steps_of_work.py": "STEPS = 500\n",
        "test_suite.py": TEST,
    }.items():
        gpu_suite.write(name, text)
    slow = commit(gpu_suite.path)
    gpu_suite.write("steps_of_work.py", "STEPS = 300\n")
    fast = commit(gpu_suite.path, "Faster")
    gpu_suite.run(*RECORDING)
    later = commit(gpu_suite.path, "Baselines")
    git(gpu_suite.path, "branch", "-M", "main")
    git(gpu_suite.path, "checkout", "-q", "-b", "change")
    gpu_suite.write("steps_of_work.py", "STEPS = 400\n")
    gpu_suite.edit("baselines/simulated-gpu/test_suite.json", fast, later)
    commit(gpu_suite.path, "Slower")
    monkeypatch.setenv("CI", "true")
    status, said = gated(gpu_suite)
    assert status == 1, said
    assert "paired by processes" in said, "a recording may be of a later commit than the project's own"
    gpu_suite.edit("baselines/simulated-gpu/test_suite.json", later, slow)
    commit(gpu_suite.path, "Slower")
    status, said = gated(gpu_suite)
    assert status == 1, said
    assert "steps  SLOWER" in said
    assert f"of main it is {fast[:12]}): --gpuperf-trust-cubins runs it" in said
