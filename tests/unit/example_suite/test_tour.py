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


def test_gains_are_those_of_the_record_or_of_a_claim(tour: ModuleType, tmp_path: Path) -> None:
    """Of work that overlaps device times show no gain; another recording shows the same rounded figures."""
    assert [tour._figure(gain) for gain in (1.0049, 1.688, 2.282, 30.24)] == ["1.00", "1.69", "2.3", "30"]
    outcomes, nothing = tmp_path / "outcomes.json", tour.Recorded(outcomes=tmp_path / "none.json")
    outcomes.write_text('{"claims": [{"id": "STR-01", "measured": 1.834}, {"id": "STR-05", "measured": null}]}')
    shown = tour.gains("streams_overlap", tour.Recorded(outcomes=outcomes))
    assert shown == "* 1.83: `n_chunks` over `serial`, by the clock on the wall (STR-01)"
    assert tour.gains("streams_overlap", nothing) == "* not on record yet"
    assert tour.gains("transpose32", tour.Recorded(tmp_path)) == "* not on record yet"
    same_work = "* 12: `f32_3warps` over `f32_1warp`, for 12 times its work"
    assert same_work in tour.gains("kernel_a_latency", tour.Recorded())


@pytest.mark.parametrize("change", ["<!-- gain transpose23 -->", ""])
def test_a_marker_too_many_or_too_few_is_an_error(tour: ModuleType, change: str) -> None:
    text = tour.README.read_text(encoding="utf-8").replace("<!-- gain transpose32 -->", change)
    with pytest.raises(tour.BadTour, match="transpose32"):
        tour.with_gains(text, tour.Recorded())
