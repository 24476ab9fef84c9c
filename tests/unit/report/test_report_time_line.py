"""The figures of a verdict on time, in one line."""

from __future__ import annotations

import math

from pytest_gpuperf.formatting import time_line
from pytest_gpuperf.model.verdict import TimeFigures


def test_a_paired_line_has_blocks_and_evidence() -> None:
    figures = TimeFigures(
        before_ns=51_200.0, after_ns=52_275.0, ratio=1.021, interval=(1.018, 1.024), tolerance=0.005, method="paired",
        blocks=23, confirm_blocks=10, log_e=math.log(7e5), log_e_needed=math.log(5e5),
    )  # fmt: skip
    assert time_line(figures) == (
        "x1.021 [1.018, 1.024] (95 %, anytime)  51.2 us -> 52.3 us  tolerance 0.5 %  "
        "paired, 23+10 blocks, E=7.0e5 (need 5.0e5)"
    )


def test_a_time_beside_its_record_has_no_blocks() -> None:
    figures = TimeFigures(before_ns=51_200.0, after_ns=52_736.0, ratio=1.03, tolerance=0.005, method="record")
    assert time_line(figures) == "x1.030  51.2 us -> 52.7 us  tolerance 0.5 %  record"


def test_a_time_without_anything_to_compare_it_with_is_its_method() -> None:
    assert time_line(TimeFigures(method="identity")) == "identity"
