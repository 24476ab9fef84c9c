"""Kernels of a second: decided in seventy launches, both processes and everything included, on the simulated GPU."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence, write_evidence

from pytest_gpuperf.judge.decision import share
from pytest_gpuperf.run import Run

ONE = ("-k", "1024")
SECOND = 1e5
"""Times the kernel's own ten microseconds."""
MOST_LAUNCHES = 70
MOST_FOR_SAME = 25


@pytest.fixture
def long(recorded):
    """Its record and its kernel take about a second, 8 ms of the host's; launches are counted over all processes."""
    path = recorded.path / "baselines" / "simulated-gpu" / "test_suite.jsonl"
    content = read_evidence(path)
    for one in content["tests"]["test_work[1024]"]["work"]["rounds"]:
        one["midmean"] *= SECOND
    write_evidence(path, content)
    launches = recorded.path / "launches"
    recorded.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(slowdown={SECOND}, sample_sd=0.0005, ")
    recorded.edit(
        "conftest.py", "    b[:] = a",
        f"    b[:] = a\n    __import__('time').sleep(0.008)\n"
        f"    with open({str(launches)!r}, 'a') as log: log.write('.')",
    )  # fmt: skip
    return recorded


def launches(suite):
    return len((suite.path / "launches").read_text())


@pytest.fixture
def many_tests(monkeypatch):
    """As if 200 tests shared the run's error rate."""
    monkeypatch.setattr(Run, "next_share", lambda self, node_id: share(200, 1))


def test_slower_kernel_of_a_second_fails_within_seventy_launches(long, many_tests):
    long.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=104")
    result = long.run("--gpuperf", "--gpuperf-budget=0.05", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"work  SLOWER  on simulated-gpu \(time\)  x", r" .* paired, \d+\+\d+ blocks, "])
    assert launches(long) <= MOST_LAUNCHES


def test_unchanged_code_of_a_second_has_the_fewest_launches_whatever_the_budget(long):
    result = long.run("--gpuperf", "--gpuperf-budget=5", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* UNCHANGED"])
    assert launches(long) <= 20


def test_changed_code_of_a_second_is_the_same_within_twenty_five_launches(long, many_tests):
    long.change_code()
    result = long.run("--gpuperf", "--gpuperf-budget=0.05", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* SAME"])
    assert launches(long) <= MOST_FOR_SAME


def test_reset_runs_before_each_launch(long):
    """Of warm launches here, which are paired too."""
    long.edit("test_suite.py", "check=", "cache='warm', reset=lambda: resets.append(b.fill(0)), check=")
    long.edit("test_suite.py", "import pytest", "import pytest\nresets = []")
    long.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=200")
    long.edit("test_suite.py", "    assert result.time_ns > 0", "    assert 16 < len(resets) < 30")
    result = long.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"work  SLOWER .*"])
    assert launches(long) <= MOST_LAUNCHES
