"""The self-test from beginning to end, in one process."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from pytest_gpuperf.device.discovery import open_device
from pytest_gpuperf.device.interface import Device, Timer
from pytest_gpuperf.device.timers.timer_errors import TimerUnavailable
from pytest_gpuperf.judge.decision import Comparison, Decision
from pytest_gpuperf.model.timer_names import TIMERS, TimerName
from pytest_gpuperf.selftest.kernels import KERNELS
from pytest_gpuperf.selftest.selftest_report import Control, KernelReport, SelftestReport, TimerReport
from pytest_gpuperf.selftest.smallest import smallest_effect
from pytest_gpuperf.selftest.trials import ALPHA, BUDGET_S, LIMITS, Trials, Version

SCHEMA = 1
FULL_S, QUICK_S = 25.0, 3.0
"""Wall-clock seconds of comparisons of a kernel by one timer."""


def run_selftest(*, quick: bool, timer_name: TimerName | None, progress: Callable[[str], object]) -> SelftestReport:
    """Figures of each timer, or of the one that is named.  ``progress`` is told what is done next.

    Raises ``NoDevice``, ``TimerUnavailable``, ``UnknownSlowdown`` and what compiling, loading, locking and timing
    raise.
    """
    start = time.perf_counter()
    device = open_device()
    device.timer(timer_name)  # where it, or every one, is unavailable, there is nothing to report
    timers = []
    with device.lock():
        for name in [timer_name] if timer_name else TIMERS:
            progress(f"comparing kernels of known slowdown by {name}")
            try:
                timers.append(_by_timer(device, device.timer(name), QUICK_S if quick else FULL_S))
            except TimerUnavailable as problem:
                progress(str(problem))
    return SelftestReport(
        schema=SCHEMA, gpu=device.facts.name, driver=device.facts.driver, limits=LIMITS, timers=tuple(timers),
        seconds=time.perf_counter() - start,
    )  # fmt: skip


def _by_timer(device: Device, timer: Timer, seconds: float) -> TimerReport:
    found = [_tried(device, timer, kernel, seconds) for kernel in KERNELS]
    remarks = dict.fromkeys(remark for _, remarks in found for remark in remarks)
    return TimerReport(
        name=timer.name, tick_ns=timer.tick_ns, overhead_ns=timer.overhead_ns,
        kernels=tuple(report for report, _ in found), remarks=tuple(remarks),
    )  # fmt: skip


def _tried(device: Device, timer: Timer, kernel: str, seconds: float) -> tuple[KernelReport, list[str]]:
    """What is found about one kernel, and remarks on the comparisons."""
    trials = Trials(device, timer, KERNELS[kernel], secrets.randbits(48))
    taken = trials.compared(seconds)
    same = taken[trials.versions[0]]
    r = [value for one in same for value in one.r]
    spread, blocks = float(np.std(r)), max(1, int(BUDGET_S * len(r) / sum(one.seconds for one in same)))
    report = KernelReport(
        kernel=kernel, duration_ns=trials.duration_ns, spread=spread,
        controls=tuple(_control(version, comparisons) for version, comparisons in taken.items()),
        smallest=smallest_effect(spread, blocks, LIMITS, ALPHA),
    )  # fmt: skip
    return report, [remark for some in taken.values() for one in some for remark in one.remarks]


def _control(version: Version, comparisons: Sequence[Comparison]) -> Control:
    decisions = [one.decision(LIMITS, ALPHA) for one in comparisons]
    return Control(
        percent=version.percent, ratio=version.ratio, comparisons=len(comparisons),
        slower=decisions.count(Decision.SLOWER), undecided=decisions.count(None),
        seconds=statistics.median(one.seconds for one in comparisons),
    )  # fmt: skip
