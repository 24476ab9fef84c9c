"""Which tests an update is asked for by name."""

from __future__ import annotations

import pytest

from pytest_gpuperf.options import Options
from pytest_gpuperf.update.modes import by_name

NODE = "test_a.py::test_copy[8]"


@pytest.mark.parametrize(
    ("named", "is_named"),
    [
        ("test_a.py::test_copy[8]", True),
        ("test_a.py::test_copy", True),
        ("test_a.py::test_copy[16]", False),
        ("test_a.py::test_cop", False),
        ("test_a.py", False),
    ],
)
def test_a_test_is_named_by_its_node_id_with_its_parameters_or_without(named: str, is_named: bool) -> None:
    assert by_name(NODE, Options(update="changed", named=(named,))) is is_named
    assert not by_name(NODE, Options(update="new", named=(named,)))
    assert not by_name(NODE, Options(named=(named,)))
