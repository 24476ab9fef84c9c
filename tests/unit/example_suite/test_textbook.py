"""The pages of the suite are what kernels, baselines, counters and lessons make of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import __main__ as pages

SUITE = Path(__file__).parents[3] / "example_suite"
FAMILIES = sorted(path.stem for path in (SUITE / "kernels").glob("*.cu"))


def test_pages_and_tour_are_up_to_date() -> None:
    assert pages.main(["--check"]) == 0, "run python example_suite/pages"


def test_changed_and_needless_files_are_written_and_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages.textbook, "pages", lambda _: {"a.md": "new", "b.md": "kept"})
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    for name, text in {"a.md": "old", "b.md": "kept", "gone.md": ""}.items():
        (tmp_path / name).write_text(text)
    assert pages.main(["--check"]) == 1
    stale = ["README.md", "a.md", "gone.md"]
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == stale
    assert pages.main([]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "a.md", "b.md"]


def test_every_family_is_in_the_tour_with_documents_gains_and_a_lesson() -> None:
    stations = {station.family: station for station in pages.textbook.stations()}
    assert stations.keys() == {path.stem for path in (SUITE / "lesson_data").glob("*.json")} == set(FAMILIES)
    assert all(station.answer.count("\n") == 1 for station in stations.values())
    keys = {key for station in stations.values() for key in station.sources.split(", ")}
    assert keys == {"GTC25", "GTC23", "BLOG", "COURSE", "all"}
    marked = re.findall(r"<!-- gain (\w+) -->", (SUITE / "README.md").read_text(encoding="utf-8"))
    assert sorted(marked) == sorted({pair.family for pair in pages.textbook.PAIRS})


def test_a_lesson_shows_pairs_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = pages.textbook.lesson_of("transpose32")
    assert [pair.optimised for pair in pages.textbook.shown_pairs("transpose32")] == lesson.pairs
    monkeypatch.setattr(lesson, "pairs", ["transpose_paded"])
    with pytest.raises(KeyError, match="transpose_paded"):
        pages.textbook.shown_pairs("transpose32")
