"""``gpuperf selftest`` from the command line, on a simulated GPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from simulated_machine import FIXED_NS, NS_PER_COUNT, SimulatedMachine

from pytest_gpuperf.compile.machine_code.cubin import read_cubin, text_of
from pytest_gpuperf.device.device_errors import NoDevice, TimerUnavailable
from pytest_gpuperf.model.evidence import KernelBinary
from pytest_gpuperf.selftest import run
from pytest_gpuperf.selftest.run import COPY, KERNELS, LOOP, TIGHT, Family, Trials
from pytest_gpuperf.selftest.selftest_report import Control, KernelReport, SelftestReport, TimerReport, as_text

Use = Callable[[SimulatedMachine], None]


@pytest.fixture
def machine() -> SimulatedMachine:
    return SimulatedMachine()


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Lets the self-test find a machine and a loop, with one comparison of each version, the same in every run."""
    monkeypatch.setattr(run, "KERNELS", {"loop": KERNELS["loop"]})
    monkeypatch.setattr(run, "QUICK_S", 0.0)
    monkeypatch.setattr(run, "RUNS", 100)
    monkeypatch.setattr(run, "secrets", SimpleNamespace(randbits=random.Random(1).getrandbits))
    return lambda machine: monkeypatch.setattr(run, "open_device", lambda: machine)


def test_quick_self_test_of_a_quiet_machine(use: Use, machine: SimulatedMachine, tmp_path: Path, command: Any) -> None:
    use(machine)
    file = tmp_path / "report.json"
    status, out, err = command("selftest", "--quick", "--json", file)
    assert status == 0
    report = msgspec.json.decode(file.read_bytes(), type=SelftestReport)
    assert [timer.name for timer in report.timers] == ["cupti", "graph"]
    for timer in report.timers:
        assert [kernel.kernel for kernel in timer.kernels] == ["loop"]
        for kernel in timer.kernels:
            assert [(one.slower, one.comparisons) for one in kernel.controls] == [(0, 1), (1, 1), (1, 1)]
            assert kernel.smallest is not None
            assert TIGHT.tolerance < kernel.smallest <= TIGHT.detect
    assert "Timer cupti: tick 1 ns, overhead 2 ns" in out
    assert "By graph, this machine resolves +0." in out
    assert "comparing kernels of known slowdown by graph" in err


def test_timer_that_does_not_work_is_named_and_left_out(
    use: Use, machine: SimulatedMachine, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    use(machine)
    make = machine.timer

    def timer(name: Any = None) -> Any:
        if name == "cupti":
            raise TimerUnavailable("the cupti timer is not available: it is taken; end the profiler")
        return make(name or "graph")

    monkeypatch.setattr(machine, "timer", timer)
    status, out, err = command("selftest", "--quick")
    assert (status, "the cupti timer is not available: it is taken; end the profiler" in err) == (0, True)
    assert "Timer cupti" not in out
    assert command("selftest", "--quick", "--timer", "cupti")[0] == 1


def test_false_alarm_is_exit_status_1(
    use: Use, machine: SimulatedMachine, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    """A module that is loaded behind another one runs 3 % slower here, if it is a kernel behind another function."""
    load = machine.load

    def placed(binary: Any) -> Any:
        kernel = load(binary)
        if b"gpuperf_other" in binary.cubin:
            kernel.factor = 1.03
        return kernel

    monkeypatch.setattr(machine, "load", placed)
    use(machine)
    status, printed, _ = command("selftest", "--quick", "--timer", "graph")
    assert (status, "1 of 1 FALSE ALARM" in printed) == (1, True)
    assert "There were FALSE ALARMS: do not gate on this machine" in printed


def test_no_gpu_is_status_1_with_a_remedy(monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    def no_device() -> Any:
        raise NoDevice("there is no NVIDIA driver; run where there is one")

    monkeypatch.setattr(run, "open_device", no_device)
    status, _, problem = command("selftest")
    assert (status, "gpuperf selftest: there is no NVIDIA driver; run where there is one" in problem) == (1, True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slower_versions_are_as_slow_as_they_are_said_to_be(kernel: str) -> None:
    machine = SimulatedMachine(sample_sd=0.0005)
    family, count = KERNELS[kernel]
    made, cost = Trials(machine, machine.timer(), family, count), NS_PER_COUNT[family.name]
    for percent, (binary, ratio) in made.versions.items():
        counts = int(binary.symbol.rpartition("_")[2])
        assert ratio == pytest.approx(1 + cost * (counts - count) / (FIXED_NS + cost * count), abs=0.0005)
        assert percent <= 100 * (ratio - 1) <= 1.1 * percent + 100 * cost / made.duration_ns


# --- kernels of known work: the count is in the machine code, and nothing but the count differs ------


def words(binary: KernelBinary) -> np.ndarray:
    return np.frombuffer(text_of(read_cubin(binary.cubin).elf, binary.symbol).data, "<u4").astype(np.int64)


@pytest.mark.parametrize(("family", "arch"), [(LOOP, "sm_80"), (COPY, "sm_120")], ids=["loop", "copy"])
def test_slower_version_differs_in_its_count_alone(arch: str, family: Family) -> None:
    baseline = words(family.compiled(4096, arch))
    for added in (1, 1 << 20):
        slower = words(family.compiled(4096 + added, arch, moved=True))
        assert set(slower[slower != baseline] - baseline[slower != baseline]) == {added}


@pytest.mark.parametrize("kernel", ["loop", "copy"])
def test_kernel_is_the_same_code_behind_another_function(kernel: str) -> None:
    family, count = KERNELS[kernel]
    alone, moved = (family.compiled(count, "sm_90", moved=moved) for moved in (False, True))
    assert (words(alone) == words(moved)).all()
    assert alone.profile.code_hash == moved.profile.code_hash
    assert alone.cubin != moved.cubin


# --- the report ----------------------------------------------------------------------------------


def a_report(smallest: float | None) -> str:
    controls = tuple(
        Control(percent=percent, ratio=1 + percent / 100, comparisons=4, slower=count, undecided=4 - count, seconds=0.2)
        for percent, count in ((0, 0), (1, 4))
    )
    kernel = KernelReport(kernel="copy", duration_ns=6e4, controls=controls, spread=0.0123, smallest=smallest)
    timer = TimerReport(name="cupti", tick_ns=32.0, overhead_ns=1.2, kernels=(kernel,))
    return as_text(SelftestReport(schema=1, gpu="A GPU", driver="580", limits=TIGHT, timers=(timer,), seconds=9.0))


@pytest.mark.parametrize(("smallest", "words"), [
    (0.008, "By cupti, this machine resolves +0.80% on kernels of 60 us and more (the copy needs the most)."),
    (0.013, "too noisy to find 1.0%: use --gpuperf-tolerance=0.008, or lock the clocks"),
    (0.6, "This machine is too noisy to find 1.0%: no tolerance is reliable here; lock the clocks"),
    (None, "this machine resolves no slowdown on kernels of 60 us and more (the copy needs the most)"),
])  # fmt: skip
def test_report_advises_where_the_machine_is_too_noisy(smallest: float | None, words: str) -> None:
    assert words in a_report(smallest)
