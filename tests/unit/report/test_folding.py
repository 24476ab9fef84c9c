"""Long lists made short."""

from __future__ import annotations

import pytest

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.folding import capped, counted, folded, function_of, said_once, shortened
from pytest_gpuperf.report.tables import Table
from pytest_gpuperf.report.verdict_order import worst


def case(test: str, *verdicts: Verdict) -> TestEvidence:
    works = []
    for number, verdict in enumerate(verdicts):
        key = Key("test_k.py", test, f"w{number}")
        judged = Judgement(key=key, target="sm_90", kind="static", verdict=verdict)
        works.append(WorkloadEvidence(key=key, judgements=(judged,)))
    return TestEvidence(module="test_k.py", test=test, workloads=tuple(works))


def fold(*tests: TestEvidence, cells: str = "40 / 0") -> list[tuple[str, list[str], int]]:
    found = folded(tests, lambda work: (cells,), lambda work: worst(work.judgements, "static"))
    return [(one.heading, [row.name for row in one.rows], one.more) for one in found]


def test_parameters_are_folded_and_the_worst_function_comes_first() -> None:
    mixed = [case(f"test_scale[{size}]", Verdict.UNCHANGED if size else Verdict.NEW) for size in range(64)]
    bad = [case(f"test_bad[{size}]", Verdict.WORSE) for size in range(3)]
    fine = case("test_fine", Verdict.SAME, Verdict.UNCHANGED)
    assert fold(*mixed, fine, *bad) == [
        ("", ["test_k.py::test_bad[…]  3 workloads"], 0),
        ("test_k.py::test_scale[…]  64 workloads: 1 NEW, 63 UNCHANGED", ["w0"], 0),
    ]


def test_rows_of_one_function_are_few_and_the_rest_is_counted() -> None:
    tests = [case("test_many", *[Verdict.WORSE] * 6, Verdict.SAME)]
    found = folded(
        tests, lambda work: (work.key.workload,), lambda work: worst(work.judgements, "static")
    )  # fmt: skip
    assert [(len(one.rows), one.more) for one in found] == [(3, 3)]
    assert found[0].heading == "test_k.py::test_many  7 workloads: 6 WORSE, 1 SAME"


def test_a_function_is_a_test_without_its_parameters() -> None:
    assert function_of(Key("test_k.py", "TestX::test_copy[a::b[c]]", "w")) == "test_k.py::TestX::test_copy"


def test_verdicts_are_counted_the_worst_first() -> None:
    verdicts = [Verdict.UNCHANGED, None, Verdict.WORSE, Verdict.UNCHANGED]
    assert counted(verdicts) == "1 WORSE, 2 UNCHANGED, 1 not judged"


def test_equal_remarks_share_a_line_even_if_their_figures_differ() -> None:
    lines = [(f"a[{n}]", f"grew by {n} % of all: gpuperf explain a[{n}]") for n in range(3)]
    assert said_once([*lines, ("b", "another: thing")]) == [
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
    table.heading("test_module.py::test_with_a_very_long_name_indeed[" + "x" * 100 + "]")
    table.row("a workload of which somebody gave a long name to", *["120 / 2048 / 100%"] * 3, "WORSE")
    lines = table.lines(width)
    assert max(len(line.text) for line in lines) <= width
    assert lines[-1].text.endswith("WORSE")
    assert "static verdict" in lines[0].text
    assert len(table.lines()[-1].text) > 100
