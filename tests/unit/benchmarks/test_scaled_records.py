"""Records of an H200, scaled: a machine that became slower is not a kernel that did."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from loaded_scripts import load_script
from pytest_gpuperf.judge.policy import Policy

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.judge.time_verdict import judge_time
from pytest_gpuperf.model.verdict import Verdict

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(ROOT / "benchmarks" / "scaled_records.py")


def verdicts(script: ModuleType, factor: float) -> Counter[Verdict]:
    store = BaselineStore(ROOT / "baselines")
    return Counter(judge_time(case, Policy()).judgement.verdict for case in script.cases(store, "nvidia-h200", factor))


def test_a_machine_slower_by_3_percent_is_an_environment_shift_and_nothing_is_red(script: ModuleType) -> None:
    found = verdicts(script, 1.03)
    assert set(found) <= {Verdict.ENV_SHIFT, Verdict.UNCHANGED}
    assert found[Verdict.ENV_SHIFT] > 0.9 * sum(found.values())


def test_a_machine_as_it_was_leaves_everything_unchanged(script: ModuleType) -> None:
    assert set(verdicts(script, 1.0)) == {Verdict.UNCHANGED}


def test_the_script_says_so_for_each_factor(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scaled_records.py", "--factor", "1.05"])
    assert script.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        f"{gpu}, {factor} times as slow" for gpu in ("nvidia-h100-80gb-hbm3", "nvidia-h200") for factor in (1, 1.05)
    ]
    assert not any("SLOWER" in line.replace("NOT-SLOWER", "") for line in lines)
