"""The report for people: what it says of a quiet machine, a noisy one, and one that cries wolf."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pytest_gpuperf.selftest.detectable import Detectable
from pytest_gpuperf.selftest.noise import KernelNoise
from pytest_gpuperf.selftest.report_text import as_text, duration
from pytest_gpuperf.selftest.selftest_report import Control, SelftestReport, TimerReport
from pytest_gpuperf.selftest.symmetry import Symmetry
from pytest_gpuperf.timing.machine_profile import MachineProfile

PROFILE = MachineProfile(
    uuid="GPU-1", gpu="Simulated GPU", date="2026-11-21T10:00:00Z", driver="580.0", timer="cupti", tick_ns=32.0,
    overhead_ns=1.0, omega=0.0015, round_sd=0.0005, block_sd=0.001, placement_sd=0.0002, plugin="0.1.0",
)  # fmt: skip


def a_control(**changes: Any) -> Control:
    fields: dict[str, Any] = {
        "kernel": "loop 10 us", "duration_ns": 1e4, "percent": 1.0, "ratio": 1.0101, "ratio_se": 0.0,
        "instructions": (9000, 9100), "tolerance": 0.005, "verdicts": 20, "slower": 20,
        "faster": 0, "passed": 0, "inconclusive": 0, "covered": 19,
        "intervals": 20, "blocks": 23.0, "seconds": 0.15, **changes,
    }  # fmt: skip
    return Control(**fields)


SAME = a_control(percent=0.0, ratio=1.0, slower=0, passed=20, instructions=(9000, 9000))


def a_report(**changes: Any) -> SelftestReport:
    fields: dict[str, Any] = {
        "schema": 1, "gpu": "Simulated GPU", "uuid": "GPU-1", "driver": "580.0", "timer": "cupti",
        "timers": (TimerReport(name="cupti", tick_ns=32.0, overhead_ns=2.0),
                   TimerReport(name="graph", unavailable="it broke; mend it")),
        "symmetry": (Symmetry(kernel="loop 10 us", blocks=96, slower=45, neighbours=92, alike=47, beyond=0,
                              mean=0.00002, carry_over=0.0001, carry_over_se=0.00004),),
        "processes": 4, "profile": PROFILE, "seconds": 93.4, "controls": (SAME, a_control()),
        "noise": (KernelNoise(kernel="loop 10 us", duration_ns=1e4, sample_sd=0.003, rho1=0.1, round_sd=0.001,
                              process_sd=0.0012, process_means_sd=0.0015),),
        "detectable": (Detectable(kernel="loop 2.5 us", duration_ns=2500.0, tolerance=0.005, effect=0.012,
                                  block_sd=0.002),
                       Detectable(kernel="loop 10 us", duration_ns=1e4, tolerance=0.001, effect=0.0021,
                                  block_sd=0.0004)), **changes,
    }  # fmt: skip
    return SelftestReport(**fields)


def test_a_report_answers_in_the_order_of_the_questions() -> None:
    text = as_text(a_report())
    wanted = (
        "gpuperf selftest: Simulated GPU, driver 580.0, timer cupti, 5 processes, 93 s",
        "cupti   tick 32 ns, overhead 2 ns", "graph   not available: it broke; mend it", "omega 0.150%",
        "loop 10 us  96      47%          51%               +0.002%  0            +0.010% +-0.008%",
        "0 false alarms in 20 verdicts (true rate below 13.9% with 95 % confidence)",
        "20 of them on equal machine code, 0.15 to 0.15 s each", "38 of 40 intervals hold the true ratio (95.0%)",
        "+1.01%       0.005      20 of 20", "9000 -> 9100 instructions", "loop 10 us   10 us   +0.21%  0.001",
        "This machine can gate +0.21% on kernels of 10 us and longer (loop 10 us decides).",
    )  # fmt: skip
    places = [text.find(words) for words in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (a_control(slower=18, inconclusive=2), "18 of 20 (missed 2)"),
        (a_control(ratio=1.004, slower=0, passed=20), "0 of 20 (accepted)"),
        (a_control(ratio=1.004, slower=1, passed=19), "1 of 20 (FALSE ALARM)"),
        (a_control(ratio=1.007, slower=5, passed=15), "5 of 20  "),
        (a_control(instructions=None), "timer"),
        (
            a_control(slower=19, instructions=None, ratio=1.0103, ratio_se=0.0002),
            "+1.03% +-0.04%  0.005      19 of 20  ",
        ),
        (a_control(slower=19, instructions=None, ratio=1.0108, ratio_se=0.0002), "19 of 20 (missed 1)"),
        (a_control(slower=1, passed=19, ratio=1.0049, ratio_se=0.0002), "1 of 20  "),
        (a_control(slower=1, passed=19, ratio=1.0045, ratio_se=0.0002), "1 of 20 (FALSE ALARM)"),
    ],
)
def test_each_cell_says_what_it_means(control: Control, words: str) -> None:
    assert words in as_text(a_report(controls=(SAME, control)))


@pytest.mark.parametrize("change", [{"block_sd": 0.006}, {"placement_sd": 0.002}])
def test_a_noisy_machine_is_told_to_be_content_with_less(change: dict[str, float]) -> None:
    text = as_text(a_report(profile=msgspec.structs.replace(PROFILE, **change)))
    assert "too noisy for the 'tight' profile: use --gpuperf-profile=standard" in text


@pytest.mark.parametrize("wrong", [{"slower": 1, "passed": 19}, {"faster": 1, "passed": 19}])
def test_false_alarms_are_shouted(wrong: dict[str, int]) -> None:
    report = a_report(controls=(msgspec.structs.replace(SAME, **wrong),))
    assert report.false_alarms == 1
    assert "do not gate on this machine" in as_text(report)


def test_faster_is_a_false_alarm_only_for_equal_kernels() -> None:
    assert a_report(controls=(a_control(ratio=1.004, slower=0, faster=1),)).false_alarms == 0


def test_votes_that_lean_are_marked() -> None:
    (fair,) = a_report().symmetry
    assert "(leans)" not in as_text(a_report())
    assert "(leans)" in as_text(a_report(symmetry=(msgspec.structs.replace(fair, slower=20),)))
    alone = msgspec.structs.replace(fair, blocks=2, slower=1, neighbours=0, alike=0)
    assert "2       50%          -  " in as_text(a_report(symmetry=(alone,)))
    assert "no blocks were taken" in as_text(a_report(symmetry=()))


def test_where_nothing_can_be_gated_it_says_so() -> None:
    text = as_text(a_report(detectable=(), controls=(), notes=()))
    assert "none: too few blocks were taken" in text
    assert "Nothing more to say." in text


@pytest.mark.parametrize(("ns", "words"), [(2500.0, "2.5 us"), (99_900.0, "99.9 us"), (999_700.0, "1 ms")])
def test_durations_have_a_fitting_unit(ns: float, words: str) -> None:
    assert duration(ns) == words
