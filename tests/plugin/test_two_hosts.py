"""Workers of pytest-xdist in folders of their own stand for hosts: what they find is the controller's, whoever dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from loaded_scripts import load_script

pytest.importorskip("xdist")


def test_updates_and_gates_are_those_of_one_host_and_a_dead_host_loses_no_finished_result(tmp_path, capsys):
    script = load_script(Path(__file__).parents[2] / "benchmarks" / "two_hosts.py")
    assert script.main(["--output", str(tmp_path / "table.md")]) == 0, capsys.readouterr().out
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "85 files, 0 of them other than after a local update" in table
    assert "39 of 40 tests judged, 0 of 3 finished on the dead host lost, 1 failed by its death" in table
