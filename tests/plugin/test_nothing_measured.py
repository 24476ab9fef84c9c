"""A gate that gathered no evidence is not green; each way to get there has its own words."""

from __future__ import annotations

import pytest

EXIT_NOTHING_MEASURED = 10


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_selection_of_nothing_fails(suite, workers):
    result = suite.run("--gpuperf", "-k", "nothing", *workers)
    assert result.ret == EXIT_NOTHING_MEASURED
    result.stdout.fnmatch_lines(["*nothing was measured: no test ran.*"])


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
