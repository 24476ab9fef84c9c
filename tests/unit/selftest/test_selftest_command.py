"""``gpuperf selftest`` from the command line, on a simulated GPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from simulated_machine import FIXED_NS, NS_PER_COUNT, SimulatedMachine

from pytest_gpuperf.cli import command_line
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.timers.timer_errors import TimerUnavailable
from pytest_gpuperf.selftest import run, trials
from pytest_gpuperf.selftest.kernels import KERNELS, LOOP, Probe, UnknownSlowdown
from pytest_gpuperf.selftest.selftest_report import Control, KernelReport, SelftestReport, TimerReport, as_text
from pytest_gpuperf.selftest.trials import LIMITS, Trials

Use = Callable[[SimulatedMachine], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Lets the self-test find a machine, with one comparison of each version, the same in every run."""
    monkeypatch.setattr(run, "QUICK_S", 0.0)
    monkeypatch.setattr(run, "secrets", SimpleNamespace(randbits=random.Random(1).getrandbits))
    return lambda machine: monkeypatch.setattr(run, "open_device", lambda: machine)


def test_quick_self_test_of_a_quiet_machine(
    use: Use, machine: SimulatedMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use(machine)
    file = tmp_path / "report.json"
    assert command_line.main(["selftest", "--quick", "--json", str(file)]) == 0
    report = msgspec.json.decode(file.read_bytes(), type=SelftestReport)
    assert [timer.name for timer in report.timers] == ["cupti", "graph"]
    for timer in report.timers:
        assert [kernel.kernel for kernel in timer.kernels] == list(KERNELS)
        for kernel in timer.kernels:
            assert [(one.slower, one.comparisons) for one in kernel.controls] == [(0, 1), (1, 1), (1, 1)]
            assert kernel.smallest is not None
            assert LIMITS.tolerance < kernel.smallest <= LIMITS.detect
    printed = capsys.readouterr()
    assert "Timer cupti: tick 1 ns, overhead 2 ns" in printed.out
    assert "By graph, this machine resolves +0." in printed.out
    assert "comparing kernels of known slowdown by graph" in printed.err


def test_one_timer_is_asked_for(
    use: Use, machine: SimulatedMachine, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    use(machine)
    assert command_line.main(["selftest", "--quick", "--timer", "graph"]) == 0
    printed = capsys.readouterr().out
    assert "Timer graph" in printed
    assert "cupti" not in printed


def test_timer_that_does_not_work_is_named_and_left_out(
    use: Use, machine: SimulatedMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(machine)
    make = machine.timer

    def timer(name: Any = None) -> Any:
        if name == "cupti":
            raise TimerUnavailable("cupti", "it is taken", "end the profiler")
        return make(name or "graph")

    monkeypatch.setattr(machine, "timer", timer)
    assert command_line.main(["selftest", "--quick"]) == 0
    printed = capsys.readouterr()
    assert "the cupti timer is not available: it is taken; end the profiler" in printed.err
    assert "Timer cupti" not in printed.out
    assert command_line.main(["selftest", "--quick", "--timer", "cupti"]) == 1


def test_false_alarm_is_exit_status_1(
    use: Use, machine: SimulatedMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that is loaded behind another one runs 3 % slower here, if it is a kernel behind another function."""
    load = machine.load

    def placed(binary: Any) -> Any:
        kernel = load(binary)
        if b"gpuperf_other" in binary.cubin:
            kernel.duration_ns *= 1.03
        return kernel

    monkeypatch.setattr(machine, "load", placed)
    use(machine)
    assert command_line.main(["selftest", "--quick", "--timer", "graph"]) == 1
    printed = capsys.readouterr().out
    assert "1 of 1 FALSE ALARM" in printed
    assert "There were FALSE ALARMS: do not gate on this machine" in printed


def test_noisy_machine_is_said_to_be_noisy(
    use: Use, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "KERNELS", {"loop": KERNELS["loop"]})
    use(SimulatedMachine(seed=1, sample_sd=1.0))
    assert command_line.main(["selftest", "--quick", "--timer", "graph"]) == 0
    assert "This machine is too noisy: by graph, blocks of the loop scatter by" in capsys.readouterr().out


def test_no_gpu_is_exit_status_1_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_device() -> Any:
        raise NoDevice("there is no NVIDIA driver", "run where there is one")

    monkeypatch.setattr(run, "open_device", no_device)
    assert command_line.main(["selftest"]) == 1
    assert "gpuperf selftest: there is no NVIDIA driver; run where there is one" in capsys.readouterr().err


@pytest.mark.parametrize("probe", KERNELS.values(), ids=KERNELS)
def test_slower_versions_are_as_slow_as_they_are_said_to_be(probe: Probe) -> None:
    machine = SimulatedMachine(seed=3, sample_sd=0.0005)
    made = Trials(machine, machine.timer(), probe, seed=1)
    cost = NS_PER_COUNT[probe.family.name]
    for version in made.versions:
        true = 1 + cost * (version.probe.count - probe.count) / (FIXED_NS + cost * probe.count)
        assert version.ratio == pytest.approx(true, abs=0.0005)
        assert version.percent <= 100 * (version.ratio - 1) <= 1.1 * version.percent + 100 * cost / made.duration_ns


def test_kernels_are_checked_before_anything_is_judged(
    machine: SimulatedMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = Probe.compiled
    monkeypatch.setattr(Probe, "compiled", lambda self, arch: compiled(Probe(LOOP, 700), arch))
    with pytest.raises(UnknownSlowdown, match="gpuperf_loop_700"):
        Trials(machine, machine.timer(), Probe(LOOP, 700), seed=1)


def test_comparisons_go_on_in_turns_until_the_time_is_over(machine: SimulatedMachine) -> None:
    made, reads = Trials(machine, machine.timer(), Probe(LOOP, 700), seed=1), iter(range(100))
    taken = made.compared(5.0, clock=lambda: float(next(reads)))
    assert [len(taken[version]) for version in made.versions] == [3, 2, 2]
    assert tuple(version.percent for version in made.versions) == trials.PERCENTS


def a_report(smallest: float | None, *, slower: int = 0, duration_ns: float = 6e4) -> str:
    controls = tuple(
        Control(percent=percent, ratio=1 + percent / 100, comparisons=4, slower=count, undecided=4 - count, seconds=0.2)
        for percent, count in ((0, slower), (1, 4))
    )
    kernel = KernelReport(
        kernel="copy", duration_ns=duration_ns, controls=controls, spread=0.0123, smallest=smallest
    )  # fmt: skip
    timer = TimerReport(name="cupti", tick_ns=32.0, overhead_ns=1.2, kernels=(kernel,), remarks=("it was hot",))
    return as_text(SelftestReport(schema=1, gpu="A GPU", driver="580", limits=LIMITS, timers=(timer,), seconds=9.0))


def test_report_names_gpu_timer_and_counts() -> None:
    text = a_report(0.008)
    for words in ("A GPU, driver 580, 9 s", "tick 32 ns, overhead 1 ns", "0 of 4, 4 undecided", "4 of 4 (by 1.00%)",
                  "60 us", "1.230%", "+0.80%", "note: it was hot"):  # fmt: skip
        assert words in text
    assert "By cupti, this machine resolves +0.80% on kernels of 60 us and more (the copy needs the most)." in text
    assert "noisy" not in text


@pytest.mark.parametrize(
    ("smallest", "words"),
    [
        (0.013, "too noisy to find 1.0%: use --gpuperf-profile=standard (1.0% / 2.0%), or lock the clocks"),
        (0.03, "use --gpuperf-profile=loose (2.0% / 5.0%)"),
        (0.2, "This machine is too noisy: by cupti, blocks of the copy scatter by 1.23%, and no profile keeps"),
        (None, "and no profile keeps its promise: lock the clocks"),
    ],
)
def test_report_advises_where_the_machine_is_too_noisy(smallest: float | None, words: str) -> None:
    assert words in a_report(smallest)


def test_report_concludes_nothing_from_short_kernels() -> None:
    assert "resolves" not in a_report(0.008, duration_ns=2500)


def test_report_says_false_alarms_loudly() -> None:
    assert "1 of 4, 3 undecided FALSE ALARM" in a_report(0.008, slower=1)
