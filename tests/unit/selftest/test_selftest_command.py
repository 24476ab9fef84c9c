"""``gpuperf selftest`` from the command line to its child processes, on a simulated GPU."""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from pytest_gpuperf.judge.policy import Decision
from pytest_gpuperf.selftest import child, refine, run, trials
from pytest_gpuperf.selftest.child import ChildFailed, Task, open_device, run_child, take
from pytest_gpuperf.selftest.kernels import COPY, LOOP
from pytest_gpuperf.selftest.known_slowdowns import Subject, Wanted, make_subjects
from pytest_gpuperf.selftest.sass_loop import LoopCode, UnexpectedCode
from pytest_gpuperf.selftest.selftest_report import SelftestReport
from pytest_gpuperf.selftest.trials import BrokenProbe, Cell, Controls
from pytest_gpuperf.timing.machine_profile import load_profile
from pytest_gpuperf.timing.paired_run import Pairing, pair
from simulated_machine import FACTS, SimulatedMachine, SimulatedTimer

from pytest_gpuperf.cli import command_line
from pytest_gpuperf.cli.selftest_command import shown
from pytest_gpuperf.device.device_errors import NoDevice
from pytest_gpuperf.device.timers.timer_errors import TimerUnavailable

UUID = FACTS.uuid
SMALL = run.Extent(processes=2, rounds=2, blocks=6, look_s=3600.0, verdicts_s=1.0)
VERDICTS = 6
WANTED = (Wanted("loop 10 us", LOOP, duration_ns=10_000.0), Wanted("copy 60 us", COPY, duration_ns=60_000.0))
REAL_RUN = Controls.run


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, simulated_children: str, profile_file: Path) -> Path:
    """A self-test of two kernels in three processes, the same in every run; returns where its profile goes.

    Of each cell so many verdicts are taken, however long they take: the clock goes on as it is read, twice a verdict
    and once a turn.
    """
    take_verdicts(monkeypatch, VERDICTS, WANTED)
    monkeypatch.setattr(run, "secrets", SimpleNamespace(randbits=random.Random(1).getrandbits))
    fine = dataclasses.replace(refine.LOOKING, delta=0.0005, epsilon=0.0015, blocks_max=40)
    monkeypatch.setattr(refine, "LOOKING", fine)
    monkeypatch.setattr(run, "DEVICE", simulated_children)
    monkeypatch.setattr(run, "QUICK", SMALL)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    return profile_file


def take_verdicts(monkeypatch: pytest.MonkeyPatch, verdicts: int, wanted: Sequence[Wanted]) -> None:
    """So many of each cell of these kernels."""
    reads, cells = itertools.count(), len(wanted) * len(trials.TRIALS)
    timed = functools.partialmethod(REAL_RUN, clock=lambda: next(reads) / (verdicts * (2 * cells + 1)))
    monkeypatch.setattr(Controls, "run", timed)
    monkeypatch.setattr(run, "WANTED", wanted)


def test_the_whole_self_test_in_three_processes(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.json"
    assert command_line.main(["selftest", "--quick", "--output", str(output)]) == 0
    printed = capsys.readouterr()
    report = msgspec.json.decode(output.read_bytes(), type=SelftestReport)
    assert report.uuid == UUID
    assert report.processes == 2
    assert report.false_alarms == 0
    assert {one.kernel for one in report.noise} == {"loop 10 us", "copy 60 us"}
    for same in report.symmetry:
        assert (same.blocks, same.neighbours, same.beyond) == (12, 10, 0)
        assert 0 < same.slower < 12
        assert abs(same.carry_over) <= 5 * same.carry_over_se
    for one in report.controls:
        assert one.verdicts >= VERDICTS
        slow = one.ratio - 1 >= 2 * one.tolerance * 0.995
        assert slow >= one.must_be_slower
        acquitted = one.passed if slow and one.percent <= 200 * one.tolerance else 0
        assert acquitted <= 1, one  # at twice the tolerance, one verdict in 200 is granted to be an acquittal
        assert one.slower == (one.verdicts - acquitted if slow else 0), one
        assert one.slower + one.faster + one.passed + one.inconclusive == one.verdicts
    for expected in ("tick 1 ns", "0 false alarms", "Machine profile kept in", "(accepted)", "This machine can gate"):
        assert expected in printed.out
    assert "[  0%] opening the GPU" in printed.err
    assert "process 2 of 2" in printed.err
    assert load_profile(UUID) == report.profile


def test_the_slowdown_of_a_loop_is_checked_by_its_instructions(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take_verdicts(monkeypatch, 1, WANTED)
    assert command_line.main(["selftest", "--quick", "--json", "--timer", "graph"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["timer"] == "graph"
    (one,) = [c for c in report["controls"] if c["kernel"] == "loop 10 us" and c["percent"] == 2.0]
    before, after = one["instructions"]
    # Of 10 us, 1.5 are fixed cost: 2 % more time are 2.35 % more instructions.
    assert after / before - 1 == pytest.approx((one["ratio"] - 1) / 0.85, rel=0.02)
    (same,) = [
        c for c in report["controls"] if c["kernel"] == "loop 10 us" and not c["percent"] and c["tolerance"] > 0.004
    ]
    assert same["instructions"] == [before, before]


def test_a_machine_that_cries_wolf_is_told_so(
    small: Path, in_this_process: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Baseline and candidate are loaded in turns: the second of each pair runs 2 % slower here."""
    loads = {"count": 0}
    load = SimulatedMachine.load

    def placed(self: SimulatedMachine, binary: Any) -> Any:
        kernel = load(self, binary)
        loads["count"] += 1
        if loads["count"] % 2 == 0:
            kernel._duration_ns *= 1.02
        return kernel

    monkeypatch.setattr(SimulatedMachine, "load", placed)
    take_verdicts(monkeypatch, VERDICTS, WANTED[:1])  # every version of a copy would be sized by pairing first
    assert command_line.main(["selftest", "--quick"]) == 1
    assert "There were FALSE ALARMS: do not gate on this machine" in capsys.readouterr().out


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What children would measure is measured here, on one machine."""
    machine = SimulatedMachine(seed=9)
    monkeypatch.setattr(run, "run_child", lambda task: take(machine, machine.timer(), task))


def a_task(subjects: list[Subject], number: int = 1, **changes: Any) -> Task:
    fields: dict[str, Any] = {"rounds": 2, "blocks": 0, "device": "simulated_machine:open_device", **changes}
    return Task(timer="cupti", process=number, subjects=tuple(subjects), seed=1, **fields)


@pytest.fixture(scope="module")
def subjects() -> list[Subject]:
    machine = SimulatedMachine(seed=2)
    return make_subjects(machine, machine.timer(), WANTED[:1], trials.PERCENTS)


def test_a_child_without_blocks_takes_rounds_alone(machine: SimulatedMachine, subjects: list[Subject]) -> None:
    (taken,) = take(machine, machine.timer(), a_task(subjects))
    assert len(taken.rounds) == 2
    assert taken.r == ()


def test_a_child_that_fails_is_quoted(simulated_children: str, subjects: list[Subject]) -> None:
    with pytest.raises(ChildFailed, match=r"process 1 of the self-test ended with status 1:(.|\n)*no_such_function"):
        run_child(a_task(subjects, device="simulated_machine:no_such_function"))


def test_a_child_is_not_misled_by_modules_of_the_current_folder(
    simulated_children: str, subjects: list[Subject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPERF_TESTS_COLD", "1")  # a warm process has imported the library's before
    (tmp_path / "resource.py").write_text("raise SystemExit('not the library')")
    (tmp_path / "json.py").write_text("raise SystemExit('not the library')")
    monkeypatch.chdir(tmp_path)
    assert len(run_child(a_task(subjects))) == 1


def test_a_child_that_does_not_end_is_ended(
    simulated_children: str, subjects: list[Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_gpuperf.selftest.child.TIMEOUT_S", 0.01)
    with pytest.raises(ChildFailed, match="is another process holding the GPU"):
        run_child(a_task(subjects))


def test_no_gpu_is_exit_status_1_with_a_remedy(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_device(name: str) -> Any:
        raise NoDevice("there is no NVIDIA driver", "run where there is one")

    monkeypatch.setattr(run, "open_device", no_device)
    assert command_line.main(["selftest"]) == 1
    assert "gpuperf selftest: there is no NVIDIA driver; run where there is one" in capsys.readouterr().err


def test_a_timer_that_does_not_work_is_listed_with_its_reason() -> None:
    class Device:
        def timer(self, name: str) -> SimulatedTimer:
            if name == "cupti":
                raise TimerUnavailable("cupti", "it is taken", "end the profiler")
            return SimulatedTimer(SimulatedMachine(seed=1), "graph")

    cupti, graph = run.timer_reports(Device())  # type: ignore[arg-type]
    assert cupti.unavailable == "it is taken; end the profiler"
    assert (graph.unavailable, graph.tick_ns) == ("", 1.0)


def test_the_kernels_are_checked_before_anything_is_judged(
    machine: SimulatedMachine, subjects: list[Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slower version that is the baseline itself, and loops that differ in more than their count."""
    (subject,) = subjects
    same = msgspec.structs.replace(subject, counts=dict.fromkeys(subject.counts, subject.count))
    with pytest.raises(BrokenProbe, match=r"loop 10 us \+0.25 %"):
        Controls(machine, machine.timer(), [same], seed=1)
    controls = Controls(machine, machine.timer(), [subject], seed=1)
    controls.run(0.01, lambda share: None)
    monkeypatch.setattr(
        trials, "loop_codes", lambda binaries: [LoopCode(outside, 4, 100) for outside in range(len(binaries))]
    )
    with pytest.raises(UnexpectedCode, match="another loop for another count"):
        controls.results()


def test_every_cell_is_tried_once_before_any_is_tried_again(machine: SimulatedMachine, subjects: list[Subject]) -> None:
    controls = Controls(machine, machine.timer(), subjects, seed=1)
    seconds = iter(range(1000))
    controls.run(len(controls.cells) / 2, lambda share: None, clock=lambda: next(seconds) / 4)
    assert {len(found) for found in controls.pairings.values()} == {1}


def test_cells_that_were_not_tried_are_left_out(machine: SimulatedMachine, subjects: list[Subject]) -> None:
    controls = Controls(machine, machine.timer(), subjects, seed=1)
    seconds = iter(range(1000))
    controls.run(1.0, lambda share: None, clock=lambda: float(next(seconds)))
    assert 0 < len(controls.results()) < len(controls.cells)


def test_verdicts_are_made_as_the_gate_makes_them(machine: SimulatedMachine, subjects: list[Subject]) -> None:
    policy = Cell(subjects[0], 1.0, 0.0025).policy
    assert (policy.delta, policy.epsilon) == (0.0025, 0.005)
    assert policy.alpha == pytest.approx(1.52e-6, rel=0.01)
    controls = Controls(machine, machine.timer(), subjects, seed=1)
    reads = itertools.count()
    controls.run(3.0, lambda share: None, clock=lambda: next(reads) / (2 * len(controls.cells)))
    (found,) = [found for cell, found in controls.pairings.items() if cell.percent == 5.0]
    assert {one.paired.decision for one in found} == {Decision.SLOWER}
    assert len({one.seed for one in found}) == len(found)


def test_blocks_of_a_long_kernel_are_of_single_launches_as_in_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimulatedMachine(seed=2, sample_sd=0.02)
    (subject,) = make_subjects(machine, machine.timer(), (Wanted("loop", LOOP, duration_ns=4e7),), trials.PERCENTS)
    controls, seen = Controls(machine, machine.timer(), [subject], seed=1), []

    def watched(*arguments: Any, **options: Any) -> Pairing:
        seen.append(pair(*arguments, **options))
        return seen[-1]

    for module in (trials, child):
        monkeypatch.setattr(module, "pair", watched)
    controls.run(1.0, lambda share: None, clock=itertools.count().__next__)
    take(machine, machine.timer(), a_task([subject], blocks=20))
    assert len(seen) >= 2
    assert {(found.size, found.long) for found in seen} == {(4, True)}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_a_bar_that_goes_away() -> None:
    err = Terminal()
    with shown(err) as progress:
        progress("judging", 0.5)
        assert "judging" in err.getvalue()
        assert f"[{'#' * 15}{'.' * 15}]  50% judging" in err.getvalue()
    assert err.getvalue().endswith("judging\r\x1b[K")
    assert "\n" not in err.getvalue()


def test_progress_elsewhere_is_a_line_per_stage() -> None:
    err = io.StringIO()
    with shown(err) as progress:
        for share in (0.1, 0.2):
            progress("judging", share)
    assert err.getvalue() == "[ 10%] judging\n"


def test_a_gpu_without_a_uuid_has_no_profile(
    small: Path, in_this_process: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take_verdicts(monkeypatch, 1, WANTED)
    monkeypatch.setattr(run, "open_device", lambda name: SimulatedMachine(seed=1, uuid=""))
    assert command_line.main(["selftest", "--quick"]) == 0
    assert "does not tell this GPU's UUID" in capsys.readouterr().out
    assert not small.exists()


def test_the_device_is_opened_by_its_name(simulated_children: str) -> None:
    assert isinstance(open_device(simulated_children), SimulatedMachine)
