"""Clock and power of a kernel under sustained load, read from another thread while a pilot is measured."""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from pytest_gpuperf.model.timed_round import DeviceState
from pytest_gpuperf.timing.health import clock_moved

LOOK_EVERY_S = 0.05


class Draw(NamedTuple):
    """Medians of the readings; None where the GPU does not tell, or there were no readings."""

    sm_clock_mhz: float | None = None
    power_w: float | None = None


@contextlib.contextmanager
def watched(state: Callable[[], DeviceState]) -> Iterator[list[DeviceState]]:
    """Fills a list with the GPU's states while the block runs; a state that cannot be read ends the looking."""
    seen: list[DeviceState] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_EVERY_S):
            seen.append(state())

    with ThreadPoolExecutor(max_workers=1) as pool:
        looking = pool.submit(look)
        try:
            yield seen
        finally:
            over.set()
            looking.exception()  # what was seen until then stands


def draw_of(seen: Sequence[DeviceState]) -> Draw:
    """Medians of the second half: the first one belongs to what ran before."""
    settled = seen[len(seen) // 2 :]
    clocks = [one.sm_clock_mhz for one in settled if one.sm_clock_mhz]
    watts = [one.power_w for one in settled if one.power_w]
    return Draw(statistics.median(clocks) if clocks else None, statistics.median(watts) if watts else None)


def compared(baseline: Draw, candidate: Draw) -> str:
    """Difference of the two in clock, in words; empty if there is none, or nothing is known."""
    before, after = baseline.sm_clock_mhz, candidate.sm_clock_mhz
    if before is None or after is None or not clock_moved(before, after):
        return ""
    draws_more = (candidate.power_w or 0) > (baseline.power_w or 0) > 0
    why = ": it draws more power" if after < before and draws_more else ""
    return f"when it runs on the SM clock is {_words(candidate)}, with the baseline's code {_words(baseline)}{why}"


def _words(draw: Draw) -> str:
    return f"{draw.sm_clock_mhz:.0f} MHz" + (f" at {draw.power_w:.0f} W" if draw.power_w else "")
