"""The self-test's report for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scipy import stats

from pytest_gpuperf.selftest.selftest_report import Control, SelftestReport, TimerReport
from pytest_gpuperf.selftest.symmetry import DELTA

LOOSE_PLACEMENT_SD = 0.0015
LOOSE_BLOCK_SD = 0.005
"""Beyond either, the ``tight`` profile promises too much on this machine (docs/how-to/selftest.md, "Output")."""
SURE_LENGTH_NS = 10_000.0
CONFIDENCE = 0.95


def as_text(report: SelftestReport) -> str:
    sections = [
        _heading(report),
        ["Timers", *_indented(map(_timer, report.timers))],
        ["Noise (standard deviations)", *_indented(_noise(report))],
        ["Blocks of kernels paired with themselves: half of the votes either way", *_indented(_symmetry(report))],
        ["Kernels paired with themselves, and effects within the tolerance", *_indented(_alarms(report))],
        ["Known slowdowns (first process; a test fails only after a second one)", *_indented(_controls(report))],
        ["Smallest effect that 95 of 100 runs find", *_indented(_detectable(report))],
        _closing(report),
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _heading(report: SelftestReport) -> list[str]:
    took = f"{report.processes + 1} processes, {report.seconds:.0f} s"
    return [f"gpuperf selftest: {report.gpu}, driver {report.driver}, timer {report.timer}, {took}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _timer(timer: TimerReport) -> str:
    if timer.unavailable:
        return f"{timer.name:<7} not available: {timer.unavailable}"
    return f"{timer.name:<7} tick {timer.tick_ns:.3g} ns, overhead {timer.overhead_ns:.0f} ns"


def _noise(report: SelftestReport) -> list[str]:
    rows = [("kernel", "time", "sample", "round", "process")]
    rows += [
        (one.kernel, duration(one.duration_ns), percent(one.sample_sd), percent(one.round_sd), percent(one.process_sd))
        for one in report.noise
    ]
    profile = report.profile
    figures = (
        f"omega {percent(profile.omega)} between recordings (upper 90 % bound), paired blocks "
        f"{percent(profile.block_sd)}, placement {percent(profile.placement_sd)}"
    )
    return [*_columns(rows), figures]


def _symmetry(report: SelftestReport) -> list[str]:
    rows = [("kernel", "blocks", "vote slower", "neighbours alike", "mean", f"beyond {DELTA:.1%}", "carry-over")]
    rows += [
        (one.kernel, str(one.blocks), _share(one.slower, one.blocks), _share(one.alike, one.neighbours),
         f"{one.mean:+.3%}", str(one.beyond), f"{one.carry_over:+.3%} +-{2 * one.carry_over_se:.3%}"
         + (" (leans)" if one.leans else ""))
        for one in report.symmetry
    ]  # fmt: skip
    return _columns(rows) if report.symmetry else ["no blocks were taken"]


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"


def _alarms(report: SelftestReport) -> list[str]:
    tried, alarms = report.acquittals, report.false_alarms
    bound = float(stats.beta.ppf(CONFIDENCE, alarms + 1, tried - alarms)) if alarms < tried else 1.0
    same = [control for control in report.controls if control.percent == 0]
    seconds = sorted(control.seconds for control in same)
    lines = [f"{alarms} false alarms in {tried} verdicts (true rate below {bound:.1%} with 95 % confidence)"]
    if seconds:
        lines.append(f"{sum(control.verdicts for control in same)} of them on equal machine code, "
                     f"{seconds[0]:.2f} to {seconds[-1]:.2f} s each (median by kernel)")  # fmt: skip
    inside, total = (sum(getattr(one, name) for one in report.controls) for name in ("covered", "intervals"))
    if total:
        lines.append(f"{inside} of {total} intervals hold the true ratio ({inside / total:.1%})")
    return lines


def _controls(report: SelftestReport) -> list[str]:
    head = ("kernel", "true effect", "tolerance", "SLOWER", "passed", "inconclusive", "s per verdict", "checked by")
    return _columns([head, *(_control(one) for one in report.controls if one.percent)])


def _control(one: Control) -> tuple[str, ...]:
    by = "timer" if one.instructions is None else f"{one.instructions[0]} -> {one.instructions[1]} instructions"
    return (
        one.kernel, _effect(one), f"{one.tolerance:g}", f"{one.slower} of {one.verdicts}{_remark(one)}",
        str(one.passed), str(one.inconclusive), f"{one.seconds:.2f}", by,
    )  # fmt: skip


def _effect(one: Control) -> str:
    return f"{one.ratio - 1:+.2%}" + (f" +-{2 * one.ratio_se:.2%}" if one.ratio_se else "")


def _remark(one: Control) -> str:
    """Remark on a cell: one that must be found, or must not."""
    if one.must_pass:
        return " (accepted)" if one.slower == 0 else " (FALSE ALARM)"
    if one.must_be_slower and one.slower < one.verdicts:
        return f" (missed {one.verdicts - one.slower})"
    return ""


def _detectable(report: SelftestReport) -> list[str]:
    if not report.detectable:
        return ["none: too few blocks were taken, or none of the tolerances up to 5 % is safe here"]
    rows = [("kernel", "time", "effect", "with tolerance=", "block sd")]
    rows += [
        (one.kernel, duration(one.duration_ns), f"{one.effect:+.2%}", f"{one.tolerance:g}", percent(one.block_sd))
        for one in report.detectable
    ]
    return _columns(rows)


def _closing(report: SelftestReport) -> list[str]:
    lines = [*report.notes]
    long = [one for one in report.detectable if one.duration_ns >= 0.9 * SURE_LENGTH_NS]
    if long:
        worst = max(long, key=lambda one: one.effect)
        lines.append(
            f"This machine can gate {worst.effect:+.2%} on kernels of 10 us and longer ({worst.kernel} decides)."
        )
    if report.profile.placement_sd > LOOSE_PLACEMENT_SD or report.profile.block_sd > LOOSE_BLOCK_SD:
        lines.append("It is too noisy for the 'tight' profile: use --gpuperf-profile=standard (1 % / 2 %).")
    if report.false_alarms:
        lines.append("There were FALSE ALARMS: do not gate on this machine, and please report this with --json.")
    return lines or ["Nothing more to say."]


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def percent(deviation: float) -> str:
    return f"{deviation:.3%}"


def duration(nanoseconds: float) -> str:
    """``2.50 us``, ``1.02 ms``"""
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds >= 999_500 else f"{nanoseconds / 1e3:.3g} us"
