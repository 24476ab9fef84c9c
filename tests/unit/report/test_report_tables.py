"""Tables on a terminal: folded where they are long, cut where it is narrow, never without a word."""

from __future__ import annotations

import pytest
from record_samples import static_of

from pytest_gpuperf.formatting import columns
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Recorded, TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.report.document import rows_of
from pytest_gpuperf.report.order import MARKUP, counted, shortened
from pytest_gpuperf.report.tables import Table, static_table, update_table


def case(test: str, *verdicts: Verdict) -> TestEvidence:
    works = []
    for number, verdict in enumerate(verdicts):
        key = Key("test_k.py", test, f"w{number}")
        judged = Judgement(key=key, target="sm_90", kind="static", verdict=verdict)
        works.append(WorkloadEvidence(key=key, judgements=(judged,), static={"sm_90": static_of(registers=40)}))
    return TestEvidence(module="test_k.py", test=test, workloads=tuple(works))


def lines_of(*tests: TestEvidence, whole: bool = False) -> list[str]:
    """Below the heads."""
    table = static_table(rows_of(tests), whole=whole)
    return [" ".join(line.text.split()).replace("40 / 0 / 50% ", "") for line in table.lines()[1:]] if table else []


PASSING = [case(f"test_fine{number}", Verdict.SAME, Verdict.UNCHANGED) for number in range(8)]


def test_long_table_is_folded_with_the_worst_function_first() -> None:
    mixed = [case(f"test_scale[{size}]", Verdict.UNCHANGED if size else Verdict.NEW) for size in range(64)]
    bad = [case(f"test_bad[{size}]", Verdict.WORSE) for size in range(3)]
    assert lines_of(*mixed, *bad, *PASSING) == [
        "test_k.py::test_bad[…] 3 workloads WORSE",
        "test_k.py::test_scale[0] [w0] NEW",
    ]
    assert lines_of(*PASSING) == []
    many = case("test_many", *[Verdict.WORSE] * 6, Verdict.SAME)
    assert lines_of(many, *PASSING) == ["test_k.py::test_many 6 workloads WORSE"]
    several = [case(f"test_{name}", Verdict.WORSE) for name in "abcdefgh"]
    assert lines_of(*several, *PASSING)[-1] == "and 2 workloads more; -v lists every one"


def test_short_table_lists_every_workload_below_its_test() -> None:
    tests = [case("test_a", Verdict.SAME), case("test_b", Verdict.SAME, Verdict.WORSE)]
    assert lines_of(*tests) == ["test_k.py::test_b", "w1 WORSE", "w0 SAME", "test_k.py::test_a", "w0 SAME"]
    assert len(lines_of(*PASSING, whole=True)) == 24


def test_verdicts_are_counted_the_worst_first() -> None:
    verdicts = [Verdict.UNCHANGED, None, Verdict.WORSE, Verdict.UNCHANGED]
    assert counted(verdicts) == "1 WORSE, 2 UNCHANGED, 1 not judged"
    assert {*MARKUP} == set(Verdict)
    assert list(MARKUP)[-1] is Verdict.UNCHANGED  # a change on one architecture hides behind no other


@pytest.mark.parametrize("name", ["test_transpose[padded-32x32]", "\u884c\u5217" * 3])
def test_long_name_loses_its_middle(name: str) -> None:
    for width in (1, 2, 5, 10, 60):
        found = shortened(name, width)
        assert columns(found) <= width
        assert found == name or width < 4 or ("…" in found and name.startswith(found.partition("…")[0]))


@pytest.mark.parametrize("width", [60, 80, 100, None])
def test_table_fits_the_terminal_and_names_the_columns_that_do_not(width: int | None) -> None:
    table = Table("registers", "sm_80", "sm_90", "sm_120", "verdict")
    table.row("test_module.py::test_with_a_very_long_name_indeed[" + "x" * 100 + "]")
    table.row("a workload of which somebody gave a long name to", *["120 / 2048 / 100%"] * 3, "WORSE")
    head, *_, last = [line.text for line in table.lines(width)]
    missing = [name for name in ("sm_80", "sm_90", "sm_120") if name not in head]
    assert len(missing) == {60: 2, 80: 1, 100: 0, None: 0}[width]
    assert last == f"(no room for: {', '.join(missing)})" if missing else last.endswith("WORSE")
    if width is not None:
        assert max(len(line.text) for line in table.lines(width)) <= width


@pytest.mark.parametrize(
    ("name", "takes"),
    [("plain", 5), ("\u884c\u5217", 4), ("\U0001f680go", 4), ("e\u0301", 1), ("\x1b[31m", 8)],
)
def test_figures_stand_in_one_column_whatever_letters_the_names_have(name: str, takes: int) -> None:
    table = Table("names", "value", "verdict")
    table.row("a longer name", "1.5", "SAME")
    table.row(name, "20.25", "SAME")
    _, first, second = (line.text for line in table.lines())
    assert first == "a longer name    1.5  SAME"
    assert second.endswith(" " * (13 - takes + 2) + "20.25  SAME")
    assert not second.endswith(" " * (13 - takes + 3) + "20.25  SAME")


def test_update_folds_equal_changes_of_a_function() -> None:
    recorded = [
        Recorded(Key("test_a.py", f"test_a[{size}]", "copy"), "sm_90", static_of(registers=32),
                 static_of(registers=registers, code="d1" * 32))
        for size, registers in enumerate((40, 48) * 8)
    ]  # fmt: skip
    table = update_table(recorded)
    assert table is not None
    rows = [line.text for line in table.lines()[1:]]
    assert [row.split("  ")[-1].strip() for row in rows] == ["registers 32 -> 40", "registers 32 -> 48"]
    assert all(row.startswith("test_a.py::test_a[\u2026]  8 workloads  ") for row in rows)
