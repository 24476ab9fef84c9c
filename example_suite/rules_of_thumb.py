"""Rules that the documents give about counters, or that Nsight Compute applies: arithmetic on figures alone."""

from __future__ import annotations


def gain_of_full_warps(lanes: float, busy: float) -> float:
    """Share of the time that ncu hopes for if all 32 lanes worked; ``busy`` is the share of the SM's peak."""
    return (32 - lanes) / 32 * busy


def on_the_right_sides(good: float, poor: float, *, good_beyond: float, poor_beyond: float) -> float:
    """By how much a rule of thumb is right about a figure that should be good and one that should be poor.

    Negative if it is wrong about one of them.  Good is above its limit, or below it, as the limits lie.
    """
    sign = 1 if good_beyond > poor_beyond else -1
    return min(sign * (good - good_beyond), sign * (poor_beyond - poor))
