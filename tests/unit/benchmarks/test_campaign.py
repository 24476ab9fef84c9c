"""The GPU campaign on a simulated machine: verdicts in two processes, and promises that go red."""

from __future__ import annotations

import json
import os
from pathlib import Path

import paired_campaign
import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = (Path(__file__).parent, ROOT / "tests" / "unit" / "selftest", ROOT / "tests" / "plugin")
"""Of the simulated machine."""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in FOLDERS:
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        monkeypatch.syspath_prepend(str(folder))


def test_kernels_are_confirmed_in_a_second_process(machine: None, tmp_path: Path) -> None:
    only = ["--only", "loop 20 us", "softmax", "loop 2.5 us", "loop 250 ms"]
    assert paired_campaign.main([
        "kernels", "--out", str(tmp_path), "--device", "campaign_machine:open_device", "--turns", "1", *only,
    ]) == 0  # fmt: skip
    verdicts = json.loads((tmp_path / "kernels.json").read_text())["verdicts"]
    assert len(verdicts) == 15, "two of equal code, and none of +1 % below 10 us"
    for one in verdicts:
        assert one["verdict"] == ("SLOWER" if one["percent"] else "SAME"), one
        assert ("in two processes" in one["reason"]) == (one["percent"] > 0)
        assert one["ratio"] == pytest.approx(1 + one["percent"] / 100, abs=0.005)
    assert "* +1 %: 3 of 3 SLOWER, wanted 2.97" in (tmp_path / "kernels.md").read_text()
    (same,) = json.loads((tmp_path / "blocks" / "softmax.json").read_text())["sequences"]
    assert len(same["r"]) == len(same["means"]) > 12


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [("", 1), ("SAME SLOWER", 0), ("SLOWER SLOWER", 1), ("SAME SLOWER INCONCLUSIVE", 1)],
    ids=["nothing", "kept", "false", "missed"],
)
def test_broken_promises_are_red(tmp_path: Path, verdicts: str, status: int) -> None:
    """The first verdict is of equal work, the others of +1 %."""
    found = [
        {"workload": "w", "percent": int(at > 0), "verdict": verdict, "ratio": 1.01, "seconds": 1.0, "blocks": 9,
         "duration_ns": 2e4} for at, verdict in enumerate(verdicts.split())
    ]  # fmt: skip
    assert paired_campaign.report(tmp_path / "page.md", found, {1: 0.9}) == status
    assert ("| w | 20 | 1 % |" in (tmp_path / "page.md").read_text()) == bool(verdicts)
