"""Machine code of a kernel beside that of its baseline, line by line, as a report shows it."""

from __future__ import annotations

from typing import Literal

from pytest_gpuperf.model.base_record import Record
from pytest_gpuperf.model.evidence import Key

Mark = Literal["same", "operands", "other", "left out"]
"""``operands``: the same opcode with other registers, immediates or addresses; ``left out``: equal lines, counted."""


class CodeLine(Record, frozen=True):
    """An instruction of the baseline and the one that stands for it now; either may be missing."""

    mark: Mark
    before: str = ""
    after: str = ""
    lines: int = 0
    """Of what is left out: how many."""


class CodeDifference(Record, frozen=True):
    """What became of the SASS of one kernel."""

    key: Key
    """Workload that it was first seen with."""
    kernel: str
    arch: str
    instructions: tuple[int, int]
    """Before and after, without padding."""
    lines: tuple[CodeLine, ...]
    more: int = 0
    """Lines that are not shown."""
