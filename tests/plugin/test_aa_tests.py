"""A/A tests: launches that a gated run compares with themselves."""

from __future__ import annotations

import random

import msgspec
import pytest

from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.workload import timed_workload


@pytest.fixture(autouse=True)
def every_test_is_drawn(monkeypatch):
    monkeypatch.setattr(random, "random", lambda: 0.0)


def test_equal_times_raise_no_warning(recorded):
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    assert "A/A test" not in result.stdout.str()


def test_machine_on_which_a_launch_is_slower_than_itself_is_warned_of(recorded, monkeypatch):
    def moving(*given, **more):
        found = compare(*given, **more)
        comparison = msgspec.structs.replace(found.comparison, r=(0.05,) * 14, means=(0.05,) * 14)
        return type(found)(comparison, found.rounds)

    monkeypatch.setattr(timed_workload, "compare", moving)
    result = recorded.run("--gpuperf", "-k", "1024")
    result.stdout.fnmatch_lines(["*A/A test: *test_work?1024? ?work? is slower than itself, x1.051 after 14 blocks*"])
    result.assert_outcomes(passed=1, warnings=1)
