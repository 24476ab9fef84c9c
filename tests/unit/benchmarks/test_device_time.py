"""The check of the timers against each other can fail: each bound is shown red."""

from __future__ import annotations

import re

import device_time
import pytest


@pytest.mark.parametrize(("cupti", "graph", "clock", "cache", "words"), [
    (10_850, 10_900, 10_900, "warm", ""),
    (2500, 2650, 2530, "warm", ""),
    (10_850, 10_990, 11_900, "cold", ""),
    (10_850, 10_900, 11_000, "warm", "CUPTI 10850 ns, in-kernel clock 11000 ns"),
    (10_850, 11_100, 10_850, "warm", r"graph 11100 ns is \+2.3% off"),
    (2500, 2750, 2500, "warm", r"graph 2750 ns is \+10.0% off"),
])  # fmt: skip
def test_each_bound_goes_red(cupti: float, graph: float, clock: float, cache: str, words: str) -> None:
    readings = [
        device_time.Reading("loop", timer, cache, time_ns, 0.01, clock)
        for timer, time_ns in (("cupti", cupti), ("graph", graph))
    ]
    found = device_time.failures(readings, 32.0)
    assert len(found) == int(bool(words))
    assert re.search(words, "".join(found))
