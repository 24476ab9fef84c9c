"""Hooks of a conftest that raise, skip or return something else: the run names the file and ends as it should."""

from __future__ import annotations

import pytest
from suite_under_test import Suite

DEVICE = """
import pytest
def pytest_gpuperf_device(config, worker):
    {}
"""
BROKEN = {
    "raise RuntimeError('too old')": "raised RuntimeError: too old. To do: let it return None where it has nothing",
    "pytest.skip('not today')": "raised Skipped: not today. To do: let it return None where it has nothing to give",
    "return 'cuda:0'": "returned 'cuda:0', which has no facts. To do: let it return None where it has nothing to give",
    "return type('Mine', (), {'facts': None})": "returned <class '*Mine'>, which has no facts",
}


@pytest.mark.parametrize("option", ["", "--gpuperf", "--update-baselines"])
@pytest.mark.parametrize("body", BROKEN)
def test_a_device_that_cannot_be_had_fails_each_test(suite: Suite, body: str, option: str) -> None:
    suite.write("conftest.py", DEVICE.format(body))
    result = suite.run(*([option] if option else []))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines([f"E * pytest_gpuperf_device of *conftest.py {BROKEN[body].replace('[', '[[]')}*"])
    assert "INTERNALERROR" not in result.stdout.str()
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize("option", ["--gpuperf-require-gpu", "--gpuperf-ncu"])
def test_a_device_that_the_run_itself_needs_is_a_usage_error(suite: Suite, option: str) -> None:
    suite.write("conftest.py", DEVICE.format("return 'cuda:0'"))
    result = suite.run("--gpuperf", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: pytest_gpuperf_device of *conftest.py returned 'cuda:0'*"])
