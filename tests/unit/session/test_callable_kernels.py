"""Which kernels of a callable a note names: those of other code, and those that make the difference (on an H200)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_gpuperf.model.result import LaunchedKernel
from pytest_gpuperf.model.verdict import Change
from pytest_gpuperf.session.callable_kernels import kernel_notes

NOW = {"first": 10155.0, "second": 30592.0, "softmax": 19158.0}
REGISTERS = {"second": [Change(what="registers", before=30, after=32)]}


@pytest.mark.parametrize(("before", "changes", "note"), [
    ({"first": 9956.0, "second": 26372.0, "softmax": 18074.0}, REGISTERS,
     "2 of 3 kernels unchanged; second x1.16, registers 30 -> 32"),
    ({**NOW, "softmax": 9579.0}, {}, "2 of 3 kernels unchanged; softmax x2"),
    ({**NOW, "first": 5077.5, "softmax": 15326.0}, {}, "1 of 3 kernels unchanged; first x2; softmax x1.25"),
    ({name: ns / 1.01 for name, ns in NOW.items()}, {}, "3 of 3 kernels unchanged"),
])  # fmt: skip
def test_kernels_that_make_the_difference_are_named(before: dict[str, float], changes: Any, note: str) -> None:
    kernels = [LaunchedKernel(name, name, grid=(1, 1, 1), block=(32, 1, 1), time_ns=ns) for name, ns in NOW.items()]
    assert list(kernel_notes(kernels, before, changes, passes=False)) == [note]
