"""Bisected synthetic histories: nobody innocent is named, and seven verdicts are enough."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from loaded_scripts import load_script

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "bisect_histories.py")


def test_every_history_leads_to_its_culprit(script: ModuleType) -> None:
    kernels = script.recorded()
    tried = [script.try_one(kind, seed, kernels) for kind in script.KINDS for seed in range(12)]
    assert not [one for one in tried if one.outcome not in ("right", "not told apart")]
    assert sum(one.outcome == "right" for one in tried) >= 34
    assert max(one.verdicts for one in tried) <= 7


def test_the_committed_page_is_what_the_command_writes(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "bisect.md"
    assert script.main(["--output", str(made)]) == 0
    assert made.read_text(encoding="utf-8") == (ROOT / "docs/results/bisect.md").read_text(encoding="utf-8")
    assert "| all | 100 | 99 |" in capsys.readouterr().out


def test_a_verdict_on_equal_times_is_never_bad(script: ModuleType) -> None:
    import random

    chance, kernels = random.Random(3), script.recorded()
    found = [script.verdict(1.0, chance.choice(kernels), chance) for _ in range(100)]
    assert set(found) <= {"good", "undecided"}
    assert [script.verdict(1.02, kernels[0], chance) for _ in range(20)] == ["bad"] * 20
