"""Pauses with work in the queue: told from a host that was late."""

from __future__ import annotations

import pytest

from pytest_gpuperf.device.timers.cupti_activities import Activity
from pytest_gpuperf.device.timers.cupti_pauses import LEAST_PAUSE_NS, pauses

US = 1000
TAGS = {1: 101, 3: 102}
"""The first sample's kernel and the second's; 0 and 2 are their flushes."""


def timeline(gap_us: int, *, before: int) -> list[Activity]:
    """Two samples of a flush of 30 us and a kernel of 10 us, with a gap before one of the four."""
    at, found = 0, []
    for number in range(4):
        at += gap_us * US if number == before else US
        lasts = (10 if number % 2 else 30) * US
        found.append(Activity(number, at, at + lasts, "kernel" if number % 2 else "[memset]"))
        at += lasts
    return list(reversed(found))


@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_gap_with_its_sample_in_the_queue_is_a_pause(before: int) -> None:
    assert pauses(timeline(400, before=before), TAGS, {101: 0.0, 102: 5.0}) == (400_000.0,)


@pytest.mark.parametrize("before", [2, 3])
def test_a_gap_before_its_sample_was_in_the_queue_is_the_host_s(before: int) -> None:
    assert pauses(timeline(400, before=before), TAGS, {101: 0.0, 102: 300_000.0}) == ()


def test_a_short_gap_is_none() -> None:
    assert pauses(timeline(int(LEAST_PAUSE_NS / US), before=2), TAGS, {101: 0.0, 102: 0.0}) == ()


def test_what_no_sample_follows_and_what_has_no_time_is_not_judged() -> None:
    assert pauses(timeline(400, before=3), {1: 101}, {101: 0.0}) == ()
    assert pauses(timeline(400, before=3), TAGS, {}) == ()
    assert pauses([], TAGS, {}) == ()


def test_work_that_overlaps_leaves_no_gap() -> None:
    long = Activity(9, 0, 10**6, "on another stream")
    assert pauses([*timeline(400, before=2), long], TAGS, {101: 0.0, 102: 0.0}) == ()
