"""The pages of the suite are what kernels, baselines, counters and lessons make of them; exercises can be done."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SUITE = Path(__file__).parents[3] / "example_suite"
SHOWN = "assert 4096 == 4224 likely bank conflicts on sm_90 likely slow-path division on sm_90"
FAMILIES = sorted(path.stem for path in (SUITE / "kernels").glob("*.cu"))


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of the suite."""
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module


@pytest.fixture
def pages(suite: Callable[[str], Any]) -> Any:
    return suite("pages.__main__")


@pytest.fixture
def exercises(suite: Callable[[str], Any]) -> Any:
    return suite("exercises")


def test_pages_pictures_and_tour_are_up_to_date(pages: Any) -> None:
    assert pages.main(["--check"]) == 0, "run python example_suite/pages"


def test_changed_and_needless_files_are_written_and_removed(
    pages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages.textbook, "pages", lambda _: {"a.md": "new", "b.md": "kept"})
    monkeypatch.setattr(pages.roofline, "draw", lambda *_: None)
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    monkeypatch.setattr(pages, "PICTURE", tmp_path / "roofline.svg")
    for name, text in {"a.md": "old", "b.md": "kept", "gone.md": "", "gone.svg": ""}.items():
        (tmp_path / name).write_text(text)
    assert pages.main(["--check"]) == 1
    stale = ["README.md", "a.md", "gone.md", "gone.svg", "roofline.svg"]
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == stale
    assert pages.main([]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "a.md", "b.md"]


def test_every_family_is_in_the_tour_with_documents_gains_and_a_lesson(pages: Any) -> None:
    stations = {station.family: station for station in pages.textbook.stations()}
    assert stations.keys() == {path.stem for path in (SUITE / "lesson_data").glob("*.json")} == set(FAMILIES)
    assert all(station.answer.count("\n") == 1 for station in stations.values())
    keys = {key for station in stations.values() for key in station.sources.split(", ")}
    assert keys == {"GTC25", "GTC23", "BLOG", "COURSE", "all"}
    marked = re.findall(r"<!-- gain (\w+) -->", (SUITE / "README.md").read_text(encoding="utf-8"))
    assert sorted(marked) == sorted({pair.family for pair in pages.textbook.PAIRS})


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


def test_a_lesson_shows_pairs_that_exist(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = pages.textbook.lesson_of("transpose32")
    assert [pair.optimised for pair in pages.textbook.shown_pairs("transpose32")] == lesson.pairs
    monkeypatch.setattr(lesson, "pairs", ["transpose_paded"])
    with pytest.raises(KeyError, match="transpose_paded"):
        pages.textbook.shown_pairs("transpose32")
