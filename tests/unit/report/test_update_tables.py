"""The table of what an update wrote, folded by test function."""

from __future__ import annotations

import pytest
from record_samples import static_of

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import Recorded
from pytest_gpuperf.report.tables import update_table


def rewritten(size: int, registers: int) -> Recorded:
    key = Key("test_a.py", f"test_a[{size}]", "copy")
    return Recorded(key, "sm_90", static_of(registers=32), static_of(registers=registers, code="d1" * 32))


@pytest.mark.parametrize(
    ("registers", "said"),
    [((40, 40), "registers 32 -> 40"), ((40, 48), "registers 32 -> 40 (the first; they differ)")],
)
def test_the_change_of_the_first_is_that_of_all_only_if_they_are_equal(registers: tuple[int, ...], said: str) -> None:
    table = update_table([rewritten(size, number) for size, number in enumerate(registers * 8)])
    (_, line, *_) = table.lines()
    assert line[0].split("  ")[-1].strip() == said
