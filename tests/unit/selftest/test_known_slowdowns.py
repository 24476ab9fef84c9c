"""Subjects: kernels of the wanted length, and versions whose slowdown is known."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_gpuperf.selftest import known_slowdowns
from pytest_gpuperf.selftest.kernels import COPY, LOOP
from pytest_gpuperf.selftest.known_slowdowns import NotLinear, Subject, TimeByCount, Wanted, fit, make_subjects
from simulated_machine import FIXED_NS, NS_PER_COUNT, SimulatedMachine

WANTED = (Wanted("loop", LOOP, duration_ns=10_000.0), Wanted("copy", COPY, count=1 << 20))


@pytest.fixture(scope="module")
def made() -> tuple[SimulatedMachine, list[Subject]]:
    machine = SimulatedMachine(seed=3, sample_sd=0.0005, process_sd=0.0)
    return machine, make_subjects(machine, machine.timer(), WANTED, (0.5, 1.0, 2.0))


def true_ns(subject: Subject, count: int) -> float:
    return FIXED_NS + NS_PER_COUNT[subject.family] * count


def test_kernels_are_as_long_as_wanted(made: tuple[SimulatedMachine, list[Subject]]) -> None:
    loop, copy = made[1]
    assert loop.duration_ns == pytest.approx(10_000, rel=0.002)
    assert copy.count == 1 << 20
    assert copy.duration_ns == pytest.approx(true_ns(copy, copy.count), rel=0.001)


@pytest.mark.parametrize("percent", [0.5, 1.0, 2.0])
def test_the_known_ratio_is_the_true_one(made: tuple[SimulatedMachine, list[Subject]], percent: float) -> None:
    for subject in made[1]:
        candidate = subject.candidate(percent)
        true = true_ns(subject, candidate.count) / true_ns(subject, subject.count)
        assert subject.ratio(percent) - 1 == pytest.approx(true - 1, rel=0.03), "not the ratio of the counts"
        assert 1 + percent / 100 - 1e-9 <= subject.ratio(percent)
        assert candidate.count <= subject.capacity


def test_at_no_slowdown_the_candidate_is_the_baseline_elsewhere(made: tuple[SimulatedMachine, list[Subject]]) -> None:
    loop = made[1][0]
    assert loop.candidate(0).count == loop.baseline().count
    assert loop.candidate(0).source.text != loop.baseline().source.text
    assert loop.ratio(0) == 1.0


def test_a_line_goes_through_the_times() -> None:
    assert fit({100: 1500.0, 200: 2000.0, 300: 2500.0}).fixed_ns == pytest.approx(1000)
    assert TimeByCount(1000.0, 5.0).count_for(2000.0) == 200


def test_a_line_that_falls_once_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, true = [], known_slowdowns.times_of

    def times_of(*arguments: Any) -> dict[int, float]:
        times = true(*arguments)
        taken.append(times)
        return {count: 1e9 / count for count in times} if len(taken) == 2 else times  # the first is the rough line's

    monkeypatch.setattr(known_slowdowns, "times_of", times_of)
    machine = SimulatedMachine(seed=3, sample_sd=0.0005, process_sd=0.0)
    (copy,) = make_subjects(machine, machine.timer(), WANTED[1:], (1.0,))
    assert len(taken) == 3
    assert copy.duration_ns == pytest.approx(true_ns(copy, copy.count), rel=0.001)


def test_a_line_that_never_rises_is_refused_after_three_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def times_of(*arguments: Any) -> dict[int, float]:
        taken.append(arguments)
        return {count: 1e9 / count for count in arguments[-1]}

    monkeypatch.setattr(known_slowdowns, "times_of", times_of)
    machine = SimulatedMachine(seed=3, sample_sd=0.0005, process_sd=0.0)
    with pytest.raises(NotLinear, match="takes no more time"):
        make_subjects(machine, machine.timer(), WANTED[1:], (1.0,))
    assert len(taken) == 3


def test_what_needs_no_slower_versions_has_none() -> None:
    machine = SimulatedMachine(seed=3, sample_sd=0.0005, process_sd=0.0)
    (copy,) = make_subjects(machine, machine.timer(), (Wanted("copy", COPY, count=1 << 20, slower=False),), (1.0,))
    assert not copy.counts
    assert copy.duration_ns == pytest.approx(true_ns(copy, copy.count), rel=0.001)


def test_a_gpu_on_which_more_work_takes_no_more_time_is_refused() -> None:
    with pytest.raises(NotLinear, match="is something else using the GPU"):
        fit({100: 2000.0, 200: 1990.0})
