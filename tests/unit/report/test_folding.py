"""Long lists made short."""

from __future__ import annotations

import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.order import capped, counted, deduplicated, function_of, shortened
from pytest_gpuperf.report.tables import Table, View, table_of


def case(test: str, *verdicts: Verdict) -> TestEvidence:
    works = []
    for number, verdict in enumerate(verdicts):
        key = Key("test_k.py", test, f"w{number}")
        judged = Judgement(key=key, target="sm_90", kind="static", verdict=verdict)
        works.append(WorkloadEvidence(key=key, judgements=(judged,)))
    return TestEvidence(module="test_k.py", test=test, workloads=tuple(works))


def lines_of(*tests: TestEvidence) -> list[str]:
    """Of the table of tests that fill more than a screen."""
    table = table_of(View(("code", "cells"), lambda work: ("40 / 0",), ("static",)), [*tests, *PASSING])
    return [" ".join(line.text.split()) for line in table.lines()[1:]] if table is not None else []


PASSING = [case(f"test_fine{number}", Verdict.SAME, Verdict.UNCHANGED) for number in range(8)]


def test_parameters_are_folded_and_the_worst_function_comes_first() -> None:
    mixed = [case(f"test_scale[{size}]", Verdict.UNCHANGED if size else Verdict.NEW) for size in range(64)]
    bad = [case(f"test_bad[{size}]", Verdict.WORSE) for size in range(3)]
    assert lines_of(*mixed, *bad) == [
        "test_k.py::test_bad[…] 3 workloads 40 / 0 WORSE",
        "test_k.py::test_scale[0] [w0] 40 / 0 NEW",
    ]
    assert lines_of() == []


def test_equal_rows_of_one_function_are_one() -> None:
    many = case("test_many", *[Verdict.WORSE] * 6, Verdict.SAME)
    assert lines_of(many) == ["test_k.py::test_many 6 workloads 40 / 0 WORSE"]


def test_a_function_is_a_test_without_its_parameters() -> None:
    assert function_of(Key("test_k.py", "TestX::test_copy[a::b[c]]", "w")) == "test_k.py::TestX::test_copy"


def test_verdicts_are_counted_the_worst_first() -> None:
    verdicts = [Verdict.UNCHANGED, None, Verdict.WORSE, Verdict.UNCHANGED]
    assert counted(verdicts) == "1 WORSE, 2 UNCHANGED, 1 not judged"


def test_equal_remarks_share_a_line_even_if_their_figures_differ() -> None:
    lines = [(f"a[{n}]", f"grew by {n} % of all: gpuperf explain a[{n}]") for n in range(3)]
    assert deduplicated([*lines, ("b", "another: thing")]) == [
        "a[0] and 2 more: grew by 0 % of all: gpuperf explain a[0]", "b: another: thing",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "most", "said"),
    [(3, 2, ["0", "1", "2"]), (4, 2, ["0", "1", "and 2 remarks more (-v lists all)"]),
     (3, 0, ["3 remarks (-v lists all)"]), (0, 0, [])],
)  # fmt: skip
def test_too_many_lines_are_counted(number: int, most: int, said: list[str]) -> None:
    assert capped([str(n) for n in range(number)], most, "remark") == said


@pytest.mark.parametrize("width", [1, 2, 5, 10, 60])
def test_a_long_name_loses_its_middle(width: int) -> None:
    name = "test_transpose[padded-32x32]"
    found = shortened(name, width)
    assert len(found) <= width
    assert found == name or width == 1 or ("…" in found and name.startswith(found.partition("…")[0]))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_table_fits_the_terminal(width: int) -> None:
    table = Table("registers", "sm_80", "sm_90", "sm_120", "static verdict")
    table.row("test_module.py::test_with_a_very_long_name_indeed[" + "x" * 100 + "]")
    table.row("a workload of which somebody gave a long name to", *["120 / 2048 / 100%"] * 3, "WORSE")
    lines = table.lines(width)
    assert max(len(line.text) for line in lines) <= width
    assert lines[-1].text.endswith("WORSE")
    assert "static verdict" in lines[0].text
    assert len(table.lines()[-1].text) > 100
