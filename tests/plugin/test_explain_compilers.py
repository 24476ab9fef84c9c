"""``explain`` where baselines are of another compiler."""

from __future__ import annotations

import pytest
from suite_under_test import Suite

from pytest_gpuperf.cli.command_line import main

OTHER = "test_suite.py::test_other"


@pytest.fixture
def one_recorded(suite: Suite) -> Suite:
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "other")
    return suite


def test_a_baseline_of_another_compiler_is_not_called_missing(one_recorded, monkeypatch, capsys):
    one_recorded.blame_another_compiler()
    one_recorded.run("--gpuperf", "-k", "other").stdout.fnmatch_lines(["*doubling  NOT-COMPARABLE  on sm_90*"])
    monkeypatch.chdir(one_recorded.path)
    assert main(["explain", OTHER]) == 0
    said = capsys.readouterr().out
    assert "none that this workload can be compared with" in said
    assert "record one with pytest --update-baselines\n" not in said
