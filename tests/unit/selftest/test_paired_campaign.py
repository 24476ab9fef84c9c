"""``benchmarks/paired_campaign.py`` on a simulated GPU: verdicts of known truth, and a table that goes red."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from simulated_machine import SimulatedMachine

from pytest_gpuperf.selftest.kernels import COPY, LOOP, Probe

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("paired_campaign")


def test_verdicts_are_taken_and_counted(
    script: ModuleType, machine: SimulatedMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "verdicts.jsonl"
    for _ in range(2):
        script.measure(machine, "graph", [Probe(LOOP, 700), Probe(COPY, 1 << 20)], file, 0.0)
    assert script.main(["table", str(file)]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| gr")]
    assert [row[:2] for row in rows] == [["graph", "loop 700"]] * 3 + [["graph", "copy 1048576"]] * 3
    assert [row[4:7] for row in rows] == [["2", "0", "0"], ["2", "2", "0"], ["2", "2", "0"]] * 2
    assert rows[0][3] == "equal code"


def test_table_goes_red_where_equal_code_was_slower(script: ModuleType, tmp_path: Path) -> None:
    line = {"timer": "cupti", "kernel": "loop 700", "duration_ns": 1e4, "ratio": 1.0, "seconds": 0.1, "r": [0.1, 0.2]}
    file = tmp_path / "verdicts.jsonl"
    for percent, status in ((1, 0), (0, 1)):
        file.write_text(json.dumps({**line, "percent": percent, "decision": "slower"}) + "\n")
        assert script.main(["table", str(file)]) == status
