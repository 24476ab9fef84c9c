"""The textbook is what kernels, baselines, counters and lessons make of it, and its exercises can be done."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SUITE = Path(__file__).parents[3] / "example_suite"
LESSONS = SUITE / "lesson_data"
SHOWN = "assert 4096 == 4224 likely bank conflicts on sm_90 likely slow-path division on sm_90"
FAMILIES = sorted(path.stem for path in (SUITE / "kernels").glob("*.cu"))


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of the suite."""
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module


@pytest.fixture
def textbook(suite: Callable[[str], Any]) -> Any:
    return suite("textbook")


@pytest.fixture
def exercises(suite: Callable[[str], Any]) -> Any:
    return suite("exercises")


def test_pages_and_pictures_are_up_to_date(textbook: Any) -> None:
    assert sorted(path.stem for path in LESSONS.glob("*.json")) == FAMILIES, "see example_suite/lessons.py"
    recorded = textbook.Recorded()
    assert textbook.stale_pages(textbook.pages(recorded)) == [], "run python example_suite/textbook.py"
    assert textbook.stale_pictures(recorded) == [], "run python example_suite/textbook.py"


def test_changed_pages_and_pictures_are_noticed(textbook: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(textbook, "PAGES", tmp_path)
    for name, text in {"a.md": "old", "b.md": "kept", "gone.md": ""}.items():
        (tmp_path / name).write_text(text)
    assert textbook.stale_pages({"a.md": "new", "b.md": "kept", "c.md": ""}) == ["a.md", "c.md", "gone.md"]
    monkeypatch.setattr(textbook, "PICTURES", tmp_path)
    for name in ("same", "other", "gone"):
        picture = "<svg><dc:description>{&quot;a over b&quot;: 2.5}</dc:description></svg>"
        (tmp_path / f"{name}.svg").write_text(picture)
    data = {"same": {"a over b": 2.5}, "other": {"a over b": 2.51}, "new": {"a over b": 2.5}}
    monkeypatch.setattr(textbook, "picture_data", lambda _: data)
    assert textbook.stale_pictures(textbook.Recorded()) == ["other", "new", "gone"]


def test_every_family_has_a_lesson(textbook: Any) -> None:
    assert sorted(textbook.families()) == FAMILIES
    with pytest.raises(textbook.NoLesson, match=r"transpose23.*lesson_data/transpose23\.json"):
        textbook.lesson_of("transpose23")


def test_exercises_change_what_is_there_once(exercises: Any) -> None:
    for family in FAMILIES:
        exercise = exercises.lesson_of(family).exercise
        assert exercises.changed(exercise) != (SUITE / exercise.file).read_text(encoding="utf-8"), family
        assert all(exercise.see), f"an exercise shows something: {family}"
    exercise = dataclasses.replace(exercises.lesson_of("transpose32").exercise, replace="kSide + 2>(in")
    with pytest.raises(exercises.BadExercise, match="0 times"):
        exercises.changed(exercise)


@pytest.mark.parametrize("family", ["transpose32", "sample4_local_memory"])
def test_an_exercise_shows_what_its_page_says(exercises: Any, family: str) -> None:
    assert exercises.not_seen(family) == []


@pytest.mark.parametrize(
    ("family", "printed", "missing"),
    [
        ("transpose32", "assert 4096 == 4224 1 failed in 2 s", ["likely bank conflicts on sm_90"]),
        ("transpose32", f"{SHOWN} 9 static only in 2 s", ["a failed test"]),
        ("transpose32", f"{SHOWN} 1 failed, 8 static only in 2 s", []),
        ("segment_intersection", f"{SHOWN} 9 static only in 2 s", []),
        ("segment_intersection", f"{SHOWN} 1 failed, 8 static only in 2 s", ["a run without a failed test"]),
    ],
)
def test_parts_that_an_exercise_does_not_show_are_named(
    exercises: Any, monkeypatch: pytest.MonkeyPatch, family: str, printed: str, missing: list[str]
) -> None:
    monkeypatch.setattr(exercises, "run", lambda *_: printed)
    assert exercises.not_seen(family) == missing


def test_every_page_explains_its_names_and_answers_its_question(textbook: Any, suite: Callable[[str], Any]) -> None:
    for station in textbook.stations():
        text = (textbook.PAGES / f"{station.family}.md").read_text(encoding="utf-8")
        assert station.answer, f"the tour in example_suite/README.md has no words on {station.family}"
        assert "\n\nIn short: " in text
        of_family = [pair for pair in suite("pairs").PAIRS if pair.family == station.family]
        names = {name for pair in of_family for name in (pair.naive, pair.optimised)}
        assert [name for name in names if f"\n| `{name}` | " not in text] == []


def test_a_lesson_shows_pairs_that_exist(suite: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    page = suite("textbook_page")
    shown = {pair.optimised for pair in page.shown_pairs("transpose32")}
    assert shown == set(json.loads((LESSONS / "transpose32.json").read_text())["pairs"])
    monkeypatch.setattr(page, "lesson_of", lambda _: type("Lesson", (), {"pairs": ["transpose_paded"]}))
    with pytest.raises(ValueError, match="transpose_paded"):
        page.shown_pairs("transpose32")
