"""``--gpuperf-ncu``: counters are collected by one process, gated, recorded and shown."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
READER = """

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_ncu_reader(config):
    from stand_in_reader import read_stand_in_report
    return read_stand_in_report
"""


def install_ncu(folder: Path) -> None:
    folder.mkdir()
    text = (HERE / "stand_in_ncu.py").read_text(encoding="utf-8")
    program = folder / "ncu"
    program.write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1), encoding="utf-8")
    program.chmod(0o755)


@pytest.fixture
def ncu_suite(recorded, monkeypatch):
    """A recorded suite on a simulated GPU, with a stand-in for ncu on PATH."""
    suite = recorded
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text(encoding="utf-8") + READER, encoding="utf-8")
    install_ncu(suite.path / "bin")
    monkeypatch.setenv("PATH", f"{suite.path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_NCU_CALLS", str(suite.path / "calls.jsonl"))
    return suite


def calls(suite):
    path = suite.path / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("workers", [(), ("-n", "0"), ("-n", "2")], ids=["plain", "n0", "n2"])
def test_one_process_collects_for_every_workload(ncu_suite, workers):
    out = ncu_suite.path / "all.json"
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu", f"--gpuperf-ncu-json={out}", *workers, subprocess=True)
    result.assert_outcomes(passed=3)
    assert len(calls(ncu_suite)) == 1
    found = json.loads(out.read_text())
    assert set(found["workloads"]) == {
        "test_suite.py::test_work[1024]", "test_suite.py::test_work[2048]", "test_suite.py::test_other"
    }  # fmt: skip
    assert found["workloads"]["test_suite.py::test_other"]["doubling"]["counters"]["smsp__inst_executed.sum"] > 0
    result.stdout.fnmatch_lines(["counters: 3 NEW"])
