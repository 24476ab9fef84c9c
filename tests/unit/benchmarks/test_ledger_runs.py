"""The simulated ledger keeps its promises on recorded blocks."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from loaded_scripts import load_script

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "ledger_runs.py")


@pytest.mark.parametrize("shift_sd", [0.0, 0.0005])
def test_promises_are_kept(script: ModuleType, shift_sd: float) -> None:
    text, kept = script.row(shift_sd, 20, script.recorded())
    assert kept, text


def test_losses_that_are_not_there_keep_no_promise(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "run", lambda *_: 0.0)
    text, kept = script.row(0.0, 5, script.recorded())
    assert not kept
    assert "| 0 of 5 | 0 of 5 |" in text


def test_the_committed_page_is_of_this_procedure(script: ModuleType) -> None:
    page = (ROOT / "docs/results/ledger.md").read_text(encoding="utf-8")
    text, _ = script.row(0.0, 200, script.recorded())
    assert text in page
