"""The figures of a verdict on time, in one line."""

from __future__ import annotations

import math

from pytest_gpuperf.formatting import time_line
from pytest_gpuperf.model.verdict import TimeFigures


def test_a_paired_line_has_blocks_and_evidence() -> None:
    figures = TimeFigures(
        before_ns=51_200.0, after_ns=52_275.0, ratio=1.021, interval=(1.018, 1.024), tolerance=0.005, method="paired",
        blocks=23, confirm_blocks=10, log_e=math.log(7e5), log_e_needed=math.log(5e5), record_ratio=1.03,
    )  # fmt: skip
    assert time_line(figures) == (
        "x1.021 [1.018, 1.024] (95 %, anytime)  51.2 us -> 52.3 us  tolerance 0.5 %  "
        "paired, 23+10 blocks, E=7.0e5 (need 5.0e5)"
    )


def test_what_was_not_paired_has_its_clock_cycles() -> None:
    figures = TimeFigures(
        before_ns=51_200.0, after_ns=52_736.0, ratio=1.03, interval=(1.02, 1.04), tolerance=0.005, method="identity",
        cycles_ratio=1.0004,
    )  # fmt: skip
    assert time_line(figures) == (
        "x1.030 [1.020, 1.040] (95 %)  51.2 us -> 52.7 us  cycles +0.04 %  tolerance 0.5 %  identity"
    )


def test_a_time_without_anything_to_compare_it_with_is_its_method() -> None:
    assert time_line(TimeFigures()) == "unpaired"
