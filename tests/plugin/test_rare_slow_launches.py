"""A fifth of the launches five times as long: SLOWER by its mean, which the midmean does not see."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence

from pytest_gpuperf.judge.decision import share
from pytest_gpuperf.run import Run

ONE = ("-k", "1024")


def tails(suite, ours, theirs):
    """Let these shares of the candidate's and of the baseline's launches take five times as long."""
    content = read_evidence(suite.path / "baselines" / "simulated-gpu" / "test_suite.jsonl")
    recorded = content["tests"]["test_work[1024]"]["work"]["cubin"]
    suite.edit(
        "conftest.py", "SimulatedGpu(",
        f"SimulatedGpu(tail_of=lambda one: ({theirs} if one.cubin_hash == {recorded!r} else {ours}, 5.0), ",
    )  # fmt: skip
    suite.change_code()


@pytest.mark.parametrize("tests", [1, 200])
def test_slow_launches_of_the_candidate_alone_fail_the_test(recorded, monkeypatch, tests):
    """However many tests share the run's error rate."""
    monkeypatch.setattr(Run, "next_share", lambda self, node_id: share(tests, 1))
    tails(recorded, 0.2, 0.0)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"work  SLOWER .*",
            r".*rare slow samples, the mean is x1\.[4-9]\d* and the midmean x(1(\.0\d*)?|0\.99\d*);.*",
        ]
    )


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_equal_tails_on_both_sides_pass(recorded, share):
    tails(recorded, share, share)
    recorded.run("--gpuperf", *ONE).assert_outcomes(passed=1)
