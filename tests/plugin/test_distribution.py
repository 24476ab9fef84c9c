"""How pytest-xdist hands out the tests of a gated run."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        (["--gpuperf"], "WorkStealingScheduling"),
        (["-o", "gpuperf=true"], "WorkStealingScheduling"),
        (["--gpuperf", "--dist=load"], "LoadScheduling"),
        (["--gpuperf", "--dist=loadfile"], "LoadFileScheduling"),
        (["-p", "no:cacheprovider"], "LoadScheduling"),
    ],
    ids=["gated", "gated by ini", "load", "loadfile", "plain"],
)
def test_workers_get_runs_of_neighbours_unless_the_user_says_otherwise(suite, arguments, way):
    result = suite.run("-v", "-n", "2", "-k", "other", *arguments, subprocess=True)
    result.stdout.fnmatch_lines([f"scheduling tests via {way}"])
    assert result.ret == 0


def test_without_workers_nothing_is_distributed(suite):
    result = suite.run("--gpuperf", "-n", "0", "-k", "other")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*scheduling tests*")
