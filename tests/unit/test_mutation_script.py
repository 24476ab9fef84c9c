"""The mutation score is the killed part of all mutants, and a room below its bound fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mutation import forget_survivors, report

KILLED, TIMED_OUT, SURVIVED, UNTESTED = 1, 36, 0, 33


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results as mutmut keeps them: three of four mutants of ``judge.votes`` detected, and another room's."""
    codes = {f"m.x_a__mutmut_{number}": code for number, code in enumerate((KILLED, TIMED_OUT, KILLED), 1)}
    codes["m.x_b__mutmut_1"] = SURVIVED
    for module, found in (("judge/votes", codes), ("model/verdict", {"m.x_c__mutmut_1": UNTESTED})):
        file = tmp_path / "mutants" / "pytest_gpuperf" / f"{module}.py.meta"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"exit_code_by_key": found}), encoding="utf-8")
    return tmp_path


def test_room_below_its_bound_fails_and_survivors_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (report(folder, "judge", 0.76), report(folder.parent, "judge", 0.5)) == (1, 1)
    capsys.readouterr()
    assert report(folder, "judge", 0.75) == 0
    told = capsys.readouterr().out
    assert "| votes | 3 | 4 | 75.0% |\n| all | 3 | 4 | 75.0% |" in told
    assert told.endswith("\n1 of the killed ran out of time.\n\nm.x_b__mutmut_1\n")


def test_what_survived_is_tried_again_and_what_was_killed_is_not(folder: Path) -> None:
    forget_survivors(folder)
    kept = json.loads((folder / "mutants/pytest_gpuperf/judge/votes.py.meta").read_text(encoding="utf-8"))
    assert kept["exit_code_by_key"] == {
        "m.x_a__mutmut_1": KILLED, "m.x_a__mutmut_2": TIMED_OUT, "m.x_a__mutmut_3": KILLED, "m.x_b__mutmut_1": None,
    }  # fmt: skip
