"""The script that runs one unchanged suite again and again: on the simulated GPU, and its table."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from loaded_scripts import load_script
from suite_under_test import Suite


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(Path(__file__).parents[2] / "benchmarks" / "reruns.py")


def test_an_unchanged_suite_is_run_and_its_verdicts_are_counted(
    script: ModuleType, recorded: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(recorded.path)
    page = recorded.path / "reruns.md"
    assert script.main(["--runs", "2", "--output", str(page), "-p", "no:cacheprovider", "-k", "1024 or other"]) == 0
    lines = page.read_text().splitlines()
    assert lines[0] == "# 2 runs of one unchanged suite"
    assert "| SUSPECT | 0 | 0.00% | 0 of 2 | 0 |" in lines
    assert sum(int(line.split("|")[2]) for line in lines[4:]) == 2 * 2
    assert page.read_text() in capsys.readouterr().out


def test_a_run_that_leaves_no_report_ends_the_script(
    script: ModuleType, recorded: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded.path)
    with pytest.raises(SystemExit, match=r"run 1 left no report \(exit status 4\)"):
        script.main(["--runs", "2", "--no-such-flag"])


def test_what_is_slower_is_a_false_alarm_and_undecided_ones_have_their_rate(script: ModuleType) -> None:
    runs = [{"a": ["SAME"], "b": ["INCONCLUSIVE"]}, {"a": ["SAME"], "b": ["INCONCLUSIVE", "SUSPECT"]}]
    assert script.table(runs)[2:] == [
        "| INCONCLUSIVE | 2 | 40.00% | 2 of 2 | 1 |",
        "| SAME | 2 | 40.00% | 2 of 2 | 1 |",
        "| SUSPECT | 1 | 20.00% | 1 of 2 | 1 |",
        "| SLOWER | 0 | 0.00% | 0 of 2 | 0 |",
    ]
    assert script.false_alarms(runs) == ["run 2: b is SUSPECT"]


def test_runs_without_a_verdict_on_time_show_nothing(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "run_once", lambda *_: {"tests": []})
    assert script.main(["--runs", "1"]) == 1
