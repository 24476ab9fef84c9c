"""Words for figures."""

from __future__ import annotations

import pytest

from pytest_gpuperf.formatting import remaining


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0.0, ""), (9.9, ""), (12.0, ", about 10 s to go"), (41.0, ", about 40 s to go"), (150.0, ", about 2 min to go")],
)
def test_a_long_rest_is_foretold_roughly(seconds: float, says: str) -> None:
    assert remaining(seconds) == says
