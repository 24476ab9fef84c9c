"""How much a time shifted, in words, and whether the clock alone explains it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_gpuperf.judge.two_sample import compare_rounds
from pytest_gpuperf.model.timed_round import RecordedRound

ALPHA = 1e-3
"""Rate of false ENV-SHIFT per workload; it warns and fails no test."""
CLOCK_CHANGE = 0.01
"""SM clocks that differ by less do not explain a slower time."""


def percent(difference: float) -> str:
    """A difference of log times as ``+1.3 %``."""
    return f"{math.expm1(difference) * 100:+.1f} %"


def amount(fraction: float) -> str:
    """A tolerance as ``0.5 %``."""
    return f"{fraction * 100:g} %"


def proven_slower(delta: float) -> str:
    """What SLOWER says: ``proven to be more than 0.5 % slower``."""
    return f"proven to be more than {amount(delta)} slower"


def cycles(one: RecordedRound) -> float:
    """SM clock cycles of a round's midmean; NaN where the clock was not read."""
    return one.midmean * (sum(one.sm_clock_mhz) / 2) / 1000 if one.sm_clock_mhz else math.nan


def cycles_ratio(baseline: Sequence[RecordedRound], candidate: Sequence[RecordedRound]) -> float | None:
    """The candidate's SM clock cycles over the baseline's; None where a clock was not read, or read as 0."""
    if not all(one.sm_clock_mhz and min(one.sm_clock_mhz) > 0 for one in (*baseline, *candidate)):
        return None
    return math.exp(compare_rounds(baseline, candidate, 0.0, cycles).difference)


def only_clocks_changed(baseline: Sequence[RecordedRound], candidate: Sequence[RecordedRound], delta: float) -> bool:
    """True if the SM clock fell by more than 1 % and in cycles the candidate is within ``delta``; False without it."""
    ratio = cycles_ratio(baseline, candidate)
    if ratio is None:
        return False
    in_time, in_cycles = compare_rounds(baseline, candidate, 0.0).difference, math.log(ratio)
    return in_time - in_cycles > CLOCK_CHANGE and in_cycles < math.log1p(delta)
