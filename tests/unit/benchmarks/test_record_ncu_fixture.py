"""The script that records a fixture reads ncu's table as ncu prints it."""

from __future__ import annotations

from pathlib import Path

import pytest
from loaded_scripts import load_script

PRINTED = """==PROF== Connected to process 1
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","dram__bytes_read.sum","a__share.pct","a__gone.sum"
"","","","","","","byte","%",""
"0","1","python3.11","127.0.0.1","transpose_naive(const float *, float *)","1","1,234,560","12.34","n/a"
"1","1","python3.11","127.0.0.1","void two_passes<float, 64>(const T1 *, T1 *, int)","1","0","0.50","n/a"
"""
NAMES = ["dram__bytes_read.sum", "a__share.pct", "a__gone.sum", "a__missing.sum"]


SCRIPT = load_script(Path(__file__).parents[3] / "benchmarks" / "record_ncu_fixture.py")


def test_figures_lose_their_commas_and_keep_their_decimals():
    assert SCRIPT.as_kernels(PRINTED, NAMES, [0, 1]) == [
        {"kernel": "transpose_naive", "range": 0,
         "metrics": {"dram__bytes_read.sum": "1234560", "a__share.pct": "12.34"}},
        {"kernel": "two_passes", "range": 1, "metrics": {"dram__bytes_read.sum": "0", "a__share.pct": "0.50"}},
    ]  # fmt: skip
    with pytest.raises(SystemExit, match="ncu prints 2 kernels, and 3 were launched"):
        SCRIPT.as_kernels(PRINTED, NAMES, [0, 1, 1])


def test_the_path_of_this_python_does_not_travel_with_the_report(monkeypatch):
    monkeypatch.setattr(SCRIPT.sys, "prefix", "/home/somebody/venv")
    report = b"\x0a\x20/home/somebody/venv/bin/python3 -m pytest\x00"
    changed = SCRIPT.without_own_path(report)
    assert len(changed) == len(report)
    assert b"somebody" not in changed
    assert changed.endswith(b"/bin/python3 -m pytest\x00")
