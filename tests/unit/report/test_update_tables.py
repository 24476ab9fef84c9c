"""The table of what an update wrote, folded by test function."""

from __future__ import annotations

from record_samples import static_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.report.update_table import update_table


def rewritten(size: int, registers: int) -> Recorded:
    key = Key("test_a.py", f"test_a[{size}]", "copy")
    return Recorded(key, "sm_90", static_of(registers=32), static_of(registers=registers, code="d1" * 32))


def test_equal_changes_of_a_test_function_are_one_row() -> None:
    table = update_table([rewritten(size, number) for size, number in enumerate((40, 48) * 8)])
    rows = [line.text for line in table.lines()[1:]]
    assert [row.split("  ")[-1].strip() for row in rows] == ["registers 32 -> 40", "registers 32 -> 48"]
    assert all(row.startswith("test_a.py::test_a[\u2026]  8 workloads  ") for row in rows)
    assert len(update_table([rewritten(size, 40) for size in range(16)], whole=True)) == 17
