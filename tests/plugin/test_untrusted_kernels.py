"""``inputs=`` and ``outputs=``: honest workloads pass with other inputs in every run, and what is given is checked."""

from __future__ import annotations

import pytest
from suite_of_untrusted import FILES
from suite_under_test import RECORD


@pytest.fixture
def untrusted(suite):
    for name in ("work.cu", "other.cu", "test_suite.py"):
        (suite.path / name).unlink()
    for name, text in FILES.items():
        suite.write(name, text)
    return suite


def test_honest_workloads_record_and_stay_unchanged(untrusted):
    result = untrusted.run(*RECORD, subprocess=True)
    print(result.stdout.str())
    result.assert_outcomes(passed=2)
    result = untrusted.run("--gpuperf", subprocess=True)
    print(result.stdout.str())
    result.assert_outcomes(passed=2)
