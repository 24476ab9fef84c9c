"""Each exercise of the textbook changes what is there once, and a run shows what its page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import exercises
import pytest

SUITE = Path(__file__).parents[3] / "example_suite"
EXERCISE = {"file": "kernels/transpose32.cu", "replace": "kSide + 1>(in", "by": "kSide>(in", "see": ["WORSE", "bank"]}


def test_exercises_change_what_is_there_once() -> None:
    lessons = sorted(SUITE.glob("lesson_data/*.json"))
    all_exercises = [exercises.exercise_of(path.stem) for path in lessons]
    assert len({each["file"] for each in all_exercises}) == len(lessons), "all changes are made in one copy"
    for each in all_exercises:
        assert exercises.changed(each) != (SUITE / each["file"]).read_text(encoding="utf-8")
        assert each["see"], each["file"]
    assert sum(each.get("fails", True) for each in all_exercises) >= 40, "the gate itself fails for most"
    with pytest.raises(exercises.BadExercise, match="0 times"):
        exercises.changed({**EXERCISE, "replace": "kSide + 2>(in"})


@pytest.mark.parametrize(("more", "words", "failed", "missing"), [
    ({}, "transpose_padded WORSE cause: bank conflicts", True, []),
    ({}, "transpose_padded WORSE", True, ["bank"]),
    ({}, "transpose_padded WORSE cause: bank conflicts", False, ["a failed test"]),
    ({"see": ["likely"], "fails": False}, "likely bank conflicts", False, []),
    ({"see": ["likely"], "fails": False}, "likely bank conflicts", True, ["a run without a failed test"]),
])  # fmt: skip
def test_parts_not_shown(more: dict[str, Any], words: str, failed: bool, missing: list[str]) -> None:
    assert exercises.missing({**EXERCISE, **more}, exercises.Shown(words, failed)) == missing


def test_status_of_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert exercises.main(["transpose32"]) == 0
    assert capsys.readouterr().out == "1 of 1 exercises are as their pages say; 1 fail by the gate\n"
    monkeypatch.setattr(exercises, "run", lambda chosen: {family: exercises.Shown("", True) for family in chosen})
    assert exercises.main(["sample4_local_memory"]) == 1
    assert capsys.readouterr().out.startswith("sample4_local_memory: not seen: add_switch WORSE on sm_90 (static); ")
