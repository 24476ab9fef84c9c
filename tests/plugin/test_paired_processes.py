"""Callables against another revision: each side in its own process, on a simulated GPU."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from git_samples import commit
from suite_under_test import CALLABLE, Suite

AGAINST = ("--gpuperf", "--gpuperf-against=HEAD")
TEST = f"import os, sys\n{CALLABLE}"
EQUAL, SLOWER = "(200, 300, 200)", "(200, 330, 204)"


@pytest.fixture
def project(gpu_suite: Suite) -> Suite:
    """A repository whose one test times a callable."""
    gpu_suite.write(".gitignore", "__pycache__\n.gpuperf\n")
    gpu_suite.write("test_suite.py", TEST.format(steps=EQUAL, more=""))
    commit(gpu_suite.path)
    return gpu_suite


NOTES_ORDER = """

def pytest_runtest_call(item):
    with open({order!r}, "a") as order:
        print(task_of(item.config).get("type", "gates"), file=order)
"""


def test_slower_callable_is_slower_in_two_pairs_of_processes(
    project: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "randbits", lambda bits: 1)
    order = tmp_path / "order.txt"
    project.append("conftest.py", NOTES_ORDER.format(order=str(order)))
    commit(project.path)
    project.write("test_suite.py", TEST.format(steps=SLOWER, more=""))
    result = project.run(*AGAINST, "--gpuperf-tolerance=tight")
    assert result.ret == 1, result.stdout.str()
    by_two = "*slower, by 2 pairs of processes: x1.03*, x1.03*"
    result.stdout.fnmatch_lines(["*steps*SLOWER*", by_two, "*0 of 1 kernel unchanged; work x1.0*"])
    # The coin lets the other process take its memory first.
    assert order.read_text().split()[3:5] == ["revision", "confirm"]


WITH_INPUTS = TEST.replace("def steps():\n", "def steps(x):\n        a[:] = x\n").replace(
    "lambda: gpu.assert_equal(b, a)", "lambda inputs: gpu.assert_equal(b, inputs[0])"
)
FRESH = ", inputs=lambda seed: gpu.random(1024, seed=seed), outputs=(b,)"


def test_callable_has_fresh_inputs_on_either_side(project: Suite) -> None:
    project.write("test_suite.py", WITH_INPUTS.format(steps=EQUAL, more=FRESH))
    commit(project.path)
    project.write("test_suite.py", WITH_INPUTS.format(steps=SLOWER, more=FRESH))
    result = project.run(*AGAINST)
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["*steps*SLOWER*"])


KILLS = """

def pytest_configure(config):
    if task_of(config).get("type") == "revision":
        import os, signal
        import simulated_gpu
        taken = []
        original = simulated_gpu.SimulatedTimer.measure

        def measure(self, slots, cache):
            taken.append(1)
            if len(taken) > 6:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(self, slots, cache)

        simulated_gpu.SimulatedTimer.measure = measure
"""


def test_revision_that_is_killed_is_never_green(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    project.append("conftest.py", KILLS)
    commit(project.path)
    project.write("test_suite.py", TEST.format(steps=SLOWER, more=""))
    result = project.run(*AGAINST)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", "*the other process has ended (pytest exit status -9)*"])


# --- against the commit on record ----------------------------------------------------------------------


def test_record_with_changes_beyond_its_commit_is_not_paired(project: Suite) -> None:
    project.write("test_suite.py", TEST.format(steps=EQUAL, more="") + "\n# edited\n")
    project.run("--update-baselines", "--gpuperf-disturbed")
    project.write("test_suite.py", TEST.format(steps=SLOWER, more=""))
    result = project.run("--gpuperf", "--gpuperf-time=all")
    result.stdout.fnmatch_lines([
        "*INCONCLUSIVE*",
        "*not paired: it was recorded with uncommitted changes to * commit, then record it with pytest *=all",
    ])  # fmt: skip
