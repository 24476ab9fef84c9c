"""``gpuperf prune`` knows of single workloads what the last run saw of them."""

from __future__ import annotations

import pytest

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.command_line import main


def prune(suite, monkeypatch, capsys, *arguments):
    monkeypatch.chdir(suite.path)
    capsys.readouterr()
    assert main(["prune", *arguments]) == 0
    return capsys.readouterr().out


def workloads(suite, target):
    return {key.workload for key in BaselineStore(suite.path / "baselines").keys(target)}


@pytest.fixture
def renamed(recorded):
    """A workload got another name since it was recorded."""
    recorded.edit("test_suite.py", 'name="doubling"', 'name="twice"')
    return recorded


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_renamed_workload_is_named_and_removed_after_a_run(renamed, monkeypatch, capsys, workers):
    renamed.run("--gpuperf", *workers, subprocess=True)
    named = prune(renamed, monkeypatch, capsys)
    assert "simulated-gpu: test_suite.py::test_other [doubling]" in named
    assert "sm_90: test_suite.py::test_other [doubling]" in named
    assert "test_work" not in named
    prune(renamed, monkeypatch, capsys, "--yes")
    assert workloads(renamed, "simulated-gpu") == workloads(renamed, "sm_90") == {"work"}
    assert "Nothing to prune" in prune(renamed, monkeypatch, capsys)


def test_the_last_workload_of_a_test_is_removed_as_its_verdict_says(recorded, monkeypatch, capsys):
    text = (recorded.path / "test_suite.py").read_text()
    before, _, _ = text.partition('    kernel = cuda_kernel("other.cu"')
    recorded.write("test_suite.py", before + "    assert gpu\n")
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", subprocess=True)
    assert "if it is meant to go: gpuperf prune --yes, after a run on a GPU" in result.stdout.str()
    prune(recorded, monkeypatch, capsys, "--yes")
    assert workloads(recorded, "simulated-gpu") == workloads(recorded, "sm_90") == {"work"}
    assert "not looked at" not in prune(recorded, monkeypatch, capsys)
    assert recorded.run("--gpuperf", "--gpuperf-open=fail", subprocess=True).ret == 0


@pytest.mark.parametrize("newer", ["test_suite.py", "baselines/sm_90/test_suite.json"], ids=["tests", "records"])
def test_what_came_after_the_last_run_stays(renamed, monkeypatch, capsys, newer):
    """A git pull brings a workload and its record, which the last run could not see."""
    renamed.run("--gpuperf", subprocess=True)
    path = renamed.path / newer
    last_run = (renamed.path / ".gpuperf/last-run.json").stat().st_ctime
    while path.stat().st_ctime <= last_run:  # the clock of files has steps
        path.write_bytes(path.read_bytes())
    said = prune(renamed, monkeypatch, capsys, "--yes")
    assert (
        "Single workloads of test_suite.py were not looked at: the tests or their records were written after the last "
        "run. Run pytest --gpuperf first.\n"
    ) in said
    assert workloads(renamed, "simulated-gpu") == {"work", "doubling"}
    renamed.run("--gpuperf", subprocess=True)
    assert "simulated-gpu: test_suite.py::test_other [doubling]" in prune(renamed, monkeypatch, capsys)


def test_what_no_run_has_seen_stays(renamed, monkeypatch, capsys):
    assert "Nothing to prune" in prune(renamed, monkeypatch, capsys)


FIRST = 'gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)), name="first")'


@pytest.mark.parametrize("stop", ["    assert False\n", f"    {FIRST}.counters\n"], ids=["failed", "checked only"])
def test_a_test_that_did_not_get_to_its_end_says_nothing(renamed, monkeypatch, capsys, stop):
    renamed.edit("test_suite.py", "    gpuperf(kernel.launch(grid=2", f"{stop}    gpuperf(kernel.launch(grid=2")
    renamed.run("--gpuperf", subprocess=True)
    assert "Nothing to prune" in prune(renamed, monkeypatch, capsys)


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="subtests are new in pytest 9")
def test_a_test_whose_subtest_stopped_early_says_nothing(renamed, monkeypatch, capsys):
    renamed.edit("test_suite.py", "def test_other(cuda_kernel,", "def test_other(subtests, cuda_kernel,")
    stop = f"    with subtests.test(): {FIRST}.counters\n"
    renamed.edit("test_suite.py", "    gpuperf(kernel.launch(grid=2", f"{stop}    gpuperf(kernel.launch(grid=2")
    renamed.run("--gpuperf", subprocess=True)
    assert "Nothing to prune" in prune(renamed, monkeypatch, capsys)


def test_a_run_without_a_gpu_says_nothing(renamed, monkeypatch, capsys):
    renamed.write("conftest.py", "")
    renamed.run("--gpuperf", subprocess=True)
    assert "Nothing to prune" in prune(renamed, monkeypatch, capsys)


def test_a_damaged_last_run_is_told_and_costs_nothing_else(renamed, monkeypatch, capsys):
    renamed.run("--gpuperf", subprocess=True)
    (renamed.path / ".gpuperf/last-run.json").write_text("{")
    said = prune(renamed, monkeypatch, capsys)
    assert "Single workloads were not looked at: " in said
    assert "Nothing to prune" in said
