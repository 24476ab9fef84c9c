"""A gate that gathered no evidence is not green; each way to get there has its own words."""

from __future__ import annotations

import pytest

EXIT_NOTHING_MEASURED = 10


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_selection_of_nothing_fails(suite, workers):
    result = suite.run("--gpuperf", "-k", "nothing", *workers)
    assert result.ret == EXIT_NOTHING_MEASURED
    result.stdout.fnmatch_lines(["*nothing was measured: no test ran.*"])


@pytest.mark.parametrize("flag", ["--setup-only", "--setup-plan"])
def test_a_run_of_nothing_but_fixtures_fails_and_names_its_flag(suite, monkeypatch, flag):
    monkeypatch.delenv("PYTEST_ADDOPTS")  # leaves out the plugins of these flags
    result = suite.run("--gpuperf", flag)
    assert result.ret == EXIT_NOTHING_MEASURED
    result.stdout.fnmatch_lines([f"*nothing was measured: no test ran. Check *{flag}* of this run: *"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_suite_that_never_calls_the_fixtures_fails(suite, workers):
    (suite.path / "test_suite.py").unlink()
    suite.write("test_plain.py", "def test_one(): pass\ndef test_two(): pass\n")
    result = suite.run("--gpuperf", *workers)
    assert result.ret == EXIT_NOTHING_MEASURED
    result.stdout.fnmatch_lines(["*nothing was measured: 2 tests ran and none used cuda_kernel or gpuperf*"])


def test_a_failure_keeps_its_own_exit_status(suite):
    (suite.path / "test_suite.py").unlink()
    suite.write("test_plain.py", "def test_one(): assert False\n")
    assert suite.run("--gpuperf").ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("asked", ["--fixtures", "--fixtures-per-test"])
def test_a_list_of_fixtures_is_not_a_gate(suite, asked):
    result = suite.run("--gpuperf", asked)
    assert result.ret == 0
    assert "nothing was measured" not in result.stdout.str()


def test_collecting_only_is_not_a_gate(suite):
    assert suite.run("--gpuperf", "--collect-only").ret == 0


@pytest.mark.parametrize("flags", [("--gpuperf",), ("--gpuperf-ncu",), ("--gpuperf", "--gpuperf-ncu")])
def test_why_there_is_no_gpu_is_said_once(suite, flags):
    text = suite.run(*flags).stdout.str()
    assert text.count("hides every GPU") == 1
    assert ("judged by static evidence" in text) == ("--gpuperf" in flags)


def test_a_single_test_is_spoken_of_as_one(suite):
    suite.write("test_none.py", "def test_none():\n    pass\n")
    result = suite.run("--gpuperf", "test_none.py")
    result.stdout.fnmatch_lines(["ERROR: nothing was measured: 1 test ran and did not use cuda_kernel or gpuperf. *"])


@pytest.fixture
def of_another_compiler(recorded):
    """Static baselines as another NVRTC left them, on a machine without a GPU."""
    recorded.blame_another_compiler()
    (recorded.path / "conftest.py").unlink()
    return recorded


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_run_that_could_compare_nothing_fails_under_ci_alone(of_another_compiler, monkeypatch, workers):
    assert of_another_compiler.run("--gpuperf", *workers).ret == 0
    monkeypatch.setenv("CI", "1")
    result = of_another_compiler.run("--gpuperf", *workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["ERROR: no workload could be compared with its record: the baseline was compiled by nvrtc 12.*"]
    )
    monkeypatch.setenv("CI", "0")
    assert of_another_compiler.run("--gpuperf", "--gpuperf-open=fail", *workers).ret == 1
    monkeypatch.setenv("CI", "1")
    assert of_another_compiler.run("--gpuperf", "--gpuperf-open=warn", *workers).ret == 0


def test_one_comparison_is_enough(of_another_compiler, monkeypatch):
    monkeypatch.setenv("CI", "1")
    path = of_another_compiler.path / "baselines" / "sm_90" / "test_suite.jsonl"
    path.write_text(path.read_text().replace('"nvrtc 12', '"nvrtc 13'))
    assert of_another_compiler.run("--gpuperf").ret == 0
