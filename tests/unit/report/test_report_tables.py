"""Tables: the cell of a verdict where architectures differ, and what a narrow table of times leaves out."""

from __future__ import annotations

import pytest

from pytest_gpuperf.formatting import columns
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, TimeFigures, Verdict
from pytest_gpuperf.report.order import MARKUP, shortened, worst
from pytest_gpuperf.report.tables import Table, table_of, time_view


def cell(*verdicts: Verdict) -> str:
    key = Key(module="a", test="b", workload="c")
    found = worst([Judgement(key=key, target="sm_90", kind="static", verdict=one) for one in verdicts], "static")
    assert found is not None
    return found.value


@pytest.mark.parametrize("other", [one for one in Verdict if one is not Verdict.UNCHANGED])
def test_what_changed_on_one_architecture_is_not_shown_as_unchanged(other: Verdict) -> None:
    assert cell(Verdict.UNCHANGED, other, Verdict.UNCHANGED) == other.value


def test_what_is_unchanged_everywhere_is_shown_as_such() -> None:
    assert cell(Verdict.UNCHANGED, Verdict.UNCHANGED) == "UNCHANGED"


def test_every_verdict_has_its_place() -> None:
    assert {*MARKUP} == set(Verdict)


def timed(figures: TimeFigures) -> list[TestEvidence]:
    """Evidence of one slower workload."""
    key = Key(module="tests/test_scale.py", test="test_scale[1048576-float32]", workload="scale")
    judged = Judgement(key=key, target="nvidia-h200", kind="time", verdict=Verdict.SLOWER, time=figures)
    return [
        TestEvidence(
            module=key.module, test=key.test, workloads=(WorkloadEvidence(key=key, judgements=(judged,)),)
        )
    ]  # fmt: skip


STEP = TimeFigures(before_ns=51_200.0, after_ns=52_300.0, ratio=1.0215, interval=(1.018, 1.025), tolerance=0.005)


def both(figures: TimeFigures) -> list[Table]:
    """The table of one workload, and of so many that they are folded."""
    tables = [table_of(time_view(timed(figures)), timed(figures) * number) for number in (1, 20)]
    return [table for table in tables if table is not None]


@pytest.mark.parametrize("place", [0, 1])
def test_times_before_and_after_stand_beside_the_ratio_where_there_is_room(place: int) -> None:
    table = both(STEP)[place]
    for width in (None, 140):
        head, *rows = [line.text for line in table.lines(width)]
        assert "before -> after" in head
        assert "51.2 us -> 52.3 us  x1.022 [1.018, 1.025]" in rows[-1]
    for width in (80, 60):
        lines = [line.text for line in table.lines(width)]
        assert max(map(len, lines)) <= width
        assert ("before" in lines[0]) == (width == 80)
        assert lines[-1].endswith("x1.022 [1.018, 1.025]   SLOWER")


def test_without_a_time_before_there_is_no_column_of_it() -> None:
    for table in both(TimeFigures(after_ns=52_300.0)):
        assert "before" not in table.lines()[0].text


@pytest.mark.parametrize(
    ("name", "takes"),
    [("plain", 5), ("\u884c\u5217", 4), ("\U0001f680go", 4), ("e\u0301", 1), ("\x1b[31m", 8)],
)
def test_figures_stand_in_one_column_whatever_letters_the_names_have(name: str, takes: int) -> None:
    table = Table("names", "value")
    table.row("a longer name", "1.5")
    table.row(name, "20.25")
    _, first, second = (line.text for line in table.lines())
    assert first == "a longer name    1.5"
    assert second.endswith(" " * (13 - takes + 2) + "20.25")
    assert not second.endswith(" " * (13 - takes + 3) + "20.25")


@pytest.mark.parametrize("width", range(1, 12))
def test_a_name_of_wide_letters_is_shortened_to_its_columns(width: int) -> None:
    found = shortened("\u884c\u5217\u884c\u5217\u884c\u5217", width)
    assert columns(found) <= width
    assert columns(found) >= width - 2
