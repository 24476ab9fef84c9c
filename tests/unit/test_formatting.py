"""Words for figures."""

from __future__ import annotations

import pytest

from pytest_gpuperf.formatting import duration, quantity


@pytest.mark.parametrize(("says", "shown"), [
    (duration(999.4), "999 ns"), (duration(999.6), "1 us"), (duration(999_999.0), "1 ms"),
    (duration(999.7e6), "1 s"), (duration(999.6e9), "1000 s"), (duration(51_234.0), "51.2 us"),
    (quantity(999.7e6, "B/s"), "1 GB/s"), (quantity(999.7e9, "FLOP/s"), "1 TFLOP/s"),
    (quantity(999.4e9, "B/s"), "999 GB/s"),
    (quantity(999.7, "B/s"), "999.7 B/s"), (quantity(9_999.6, "B"), "10 kB"), (quantity(-999.7e3), "-1 M"),
])  # fmt: skip
def test_a_figure_that_rounds_to_a_thousand_is_one_of_the_next_unit(says: str, shown: str) -> None:
    assert says == shown
