"""What the self-test found, as one record (the JSON of ``gpuperf selftest --json FILE``) and as text."""

from __future__ import annotations

import math

from pytest_gpuperf.formatting import duration
from pytest_gpuperf.model.evidence import Record
from pytest_gpuperf.model.limits import Limits, TimerName

SHORT_NS = 5000.0
"""Of shorter kernels the closing lines say nothing: a tick is too much of their time."""
CALM_DOWN = "lock the clocks with 'nvidia-smi --lock-gpu-clocks' and end other processes on the GPU"


class Control(Record, frozen=True):
    """Comparisons of one kernel with a version of known slowdown."""

    percent: float
    """Slowdown asked for; 0: the same machine code."""
    ratio: float
    """Time of the version over that of the kernel, as measured before the comparisons."""
    comparisons: int
    slower: int
    undecided: int
    seconds: float
    """Median wall-clock time of a comparison."""


class KernelReport(Record, frozen=True):
    kernel: str
    duration_ns: float
    controls: tuple[Control, ...]
    """The first is of equal code."""
    spread: float
    """Standard deviation of the log ratio of a block of equal kernels."""
    smallest: float | None
    """Slowdown (a fraction) that 99 of 100 runs find within the budget; None above 50 %."""


class TimerReport(Record, frozen=True):
    name: TimerName
    tick_ns: float
    overhead_ns: float
    """Reading of a sample of an empty kernel beyond the kernel's own time."""
    kernels: tuple[KernelReport, ...]


class SelftestReport(Record, frozen=True):
    schema: int
    gpu: str
    driver: str
    limits: Limits
    timers: tuple[TimerReport, ...]
    seconds: float

    @property
    def false_alarms(self) -> int:
        """Comparisons of a kernel with itself that ended as SLOWER."""
        return sum(kernel.controls[0].slower for timer in self.timers for kernel in timer.kernels)


def as_text(report: SelftestReport) -> str:
    tolerance, detect = report.limits
    lines = [f"gpuperf selftest: {report.gpu}, driver {report.driver}, {report.seconds:.0f} s",
             f"SLOWER is beyond {tolerance:.1%}; {detect:.1%} has to be detected"]  # fmt: skip
    for timer in report.timers:
        lines += ["", *_timer(timer), *_closing(timer, report.limits)]
    if report.false_alarms:
        lines.append("There were FALSE ALARMS: do not gate on this machine, and please report this with --json.")
    return "\n".join(lines) + "\n"


def _timer(timer: TimerReport) -> list[str]:
    heads = [f"SLOWER at {one.percent:+g} %" for one in timer.kernels[0].controls[1:]]
    rows = [("kernel", "time", "SLOWER than itself", *heads, "s a verdict", "spread of a block", "smallest found")]
    for kernel in timer.kernels:
        seconds = [one.seconds for one in kernel.controls]
        smallest = "none" if kernel.smallest is None else f"{kernel.smallest:+.2%}"
        rows.append((kernel.kernel, duration(kernel.duration_ns), *map(_control, kernel.controls),
                     f"{min(seconds):.2f} to {max(seconds):.2f}", f"{kernel.spread:.3%}", smallest))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    head = f"Timer {timer.name}: tick {timer.tick_ns:.3g} ns, overhead {timer.overhead_ns:.0f} ns"
    return [head, *(f"  {line}" for line in table)]


def _control(one: Control) -> str:
    undecided = f", {one.undecided} undecided" if one.undecided else ""
    remark = f" (by {one.ratio - 1:.2%})" if one.percent else " FALSE ALARM" if one.slower else ""
    return f"{one.slower} of {one.comparisons}{undecided}{remark}"


def _closing(timer: TimerReport, limits: Limits) -> list[str]:
    """The verdict on the machine, by its worst kernel that is not short."""
    long = [one for one in timer.kernels if one.duration_ns >= SHORT_NS]
    if not long:
        return []
    smallest, worst = max((math.inf if one.smallest is None else one.smallest, one.kernel) for one in long)
    shortest = duration(min(one.duration_ns for one in long))
    found = f"{smallest:+.2%}" if math.isfinite(smallest) else "no slowdown"
    lines = [f"By {timer.name}, this machine resolves {found} on kernels of {shortest} and more "
             f"(the {worst} needs the most)."]  # fmt: skip
    if smallest > limits.detect:
        kept = math.ceil((smallest - limits.tolerance) * 1000) / 1000 if math.isfinite(smallest) else 1.0
        advice = f"use --gpuperf-tolerance={kept:g}, or" if kept <= 0.5 else "no tolerance is reliable here;"
        lines.append(f"This machine is too noisy to find {limits.detect:.1%}: {advice} {CALM_DOWN}.")
    return lines
