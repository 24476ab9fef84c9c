"""The tour of the example suite names every family, and shows the gains that the baselines have."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

SUITE = Path(__file__).parents[3] / "example_suite"


@pytest.fixture
def tour(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SUITE)  # type: ignore[no-untyped-call]
    return importlib.import_module("tour")


def test_the_readme_shows_the_gains_on_record(tour: ModuleType) -> None:
    text = tour.README.read_text(encoding="utf-8")
    assert tour.with_gains(text, tour.Recorded()) == text, "run python example_suite/tour.py"


def test_every_family_has_two_lines_and_names_its_document(tour: ModuleType) -> None:
    text = tour.README.read_text(encoding="utf-8")
    sources = r"\[(?:(?:GTC25|GTC23|BLOG|COURSE|all)(?:, )?)+\]"
    stations = dict(re.findall(rf"^\*\*(\w+)\*\* {sources}: (.+\n.+)\n(?:<!-- gain|\n)", text, re.MULTILINE))
    assert stations.keys() == {path.stem for path in (SUITE / "kernels").glob("*.cu")}


@pytest.mark.parametrize("change", ["<!-- gain transpose23 -->", ""])
def test_a_marker_too_many_or_too_few_is_an_error(tour: ModuleType, change: str) -> None:
    text = tour.README.read_text(encoding="utf-8").replace("<!-- gain transpose32 -->", change)
    with pytest.raises(tour.BadTour, match="transpose32"):
        tour.with_gains(text, tour.Recorded())
