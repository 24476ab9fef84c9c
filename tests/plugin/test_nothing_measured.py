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
