"""Which samples a guarded timer looks at, and what seeds they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.device.plain_arrays import NotPlain, PlainArrays
from pytest_gpuperf.workload import guarded_timer
from pytest_gpuperf.workload.fresh_inputs import FreshInputs, Seeds
from pytest_gpuperf.workload.guarded_timer import LOOKED_AT, WARM_UP_BATCHES, GuardedTimer
from pytest_gpuperf.workload.run_guard import Result, RunGuard

ARRAYS = PlainArrays(np.ndarray)


class Immediate:
    """Runs each sample at once."""

    name = "events"
    tick_ns = overhead_ns = 1.0
    kernel_breakdown, pauses_ns = ({"kernel": 1.0},), (2.0,)

    def measure(self, slots: Sequence[Slot], cache: str) -> list[list[float]]:
        for slot in slots:
            for _ in range(slot.dropped + slot.samples):
                if slot.reset is not None:
                    slot.reset()
                if slot.guard is not None:
                    slot.guard.arm()
                returned = slot.run()
                if slot.guard is not None:
                    slot.guard.after(returned)
        return [[1.0] * slot.samples for slot in slots]


@pytest.fixture
def target() -> Any:
    return np.zeros(4)


@pytest.fixture
def guard(target: Any) -> RunGuard:
    inputs = FreshInputs("work", lambda seed: np.full(4, float(seed)), ARRAYS, {0: target})
    return RunGuard("work", ARRAYS, Seeds(7), inputs, [], None)


def measured(guard: RunGuard, look: Callable[[int, Result], None] | None, slots: Sequence[Slot], batches: int) -> Any:
    timer = GuardedTimer(Immediate(), guard, look)  # type: ignore[arg-type]
    for _ in range(batches):
        timer.measure(slots, "cold")
    return timer


def test_each_batch_behind_the_warm_up_has_samples_looked_at(guard: RunGuard, target: Any) -> None:
    seen: list[tuple[int, float]] = []
    slot = Slot(target.copy, 8, guard.reset)
    measured(guard, lambda number, result: seen.append((number, result.value[0])), [slot], 5)
    assert len(seen) == LOOKED_AT * (5 - WARM_UP_BATCHES)
    assert all(number % 9 for number, _ in seen)  # the first of nine is dropped
    assert all(value == guard.seeds[number] for number, value in seen)
    assert len({number % 9 for number, _ in seen}) > 3


def test_the_baselines_results_are_not_looked_at_and_have_the_same_seeds(guard: RunGuard, target: Any) -> None:
    runs: dict[str, list[float]] = {"A": [], "B": []}
    seen: list[int] = []

    def side(name: str) -> Callable[[], Any]:
        def run() -> Any:
            runs[name].append(target[0])
            return target.copy()

        return run

    slots = [Slot(side("A"), 3, guard.reset_baseline), Slot(side("B"), 3, guard.reset)]
    slots += reversed(slots)
    measured(guard, lambda number, result: seen.append(number), [*slots], 4)
    assert len(seen) == LOOKED_AT * 2
    assert len(runs["A"]) == len(set(runs["A"])) == 32
    assert all(sorted(runs["A"][at : at + 8]) == sorted(runs["B"][at : at + 8]) for at in range(0, 32, 8))


def test_checks_that_take_long_become_rare(guard: RunGuard, target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(guarded_timer.time, "perf_counter", lambda: float(next(clock)))  # a second for each look at it
    seen: list[int] = []
    measured(guard, lambda number, _: seen.append(number), [Slot(target.copy, 8, guard.reset)], 200)
    assert 5 * LOOKED_AT < len(seen) < 150 * LOOKED_AT


def test_results_of_another_revision_are_not_looked_at(guard: RunGuard, target: Any) -> None:
    timer = measured(guard, None, [Slot(target.copy, 8, guard.reset)], 5)
    assert guard.runs == 5 * 9
    assert (timer.kernel_breakdown, timer.pauses_ns) == (Immediate.kernel_breakdown, Immediate.pauses_ns)


def test_slots_of_something_else_are_measured_as_they_are(guard: RunGuard) -> None:
    calls: list[int] = []
    measured(guard, lambda number, result: pytest.fail("looked at"), [Slot(lambda: calls.append(1), 3)], 4)
    assert len(calls) == 16
    assert guard.runs == 0


def test_what_is_no_result_ends_the_measurement_behind_its_batch(guard: RunGuard) -> None:
    runs: list[int] = []
    with pytest.raises(NotPlain):
        measured(guard, lambda number, result: None, [Slot(lambda: runs.append(1) or object(), 3, guard.reset)], 4)
    assert len(runs) == 4 * (WARM_UP_BATCHES + 1)


def test_seeds_are_those_of_their_base_and_of_no_other() -> None:
    first, again, other = Seeds(1), Seeds(1), Seeds(2)
    drawn = [first[number] for number in range(2000)]
    assert drawn == [again[number] for number in range(2000)]
    assert len(set(drawn)) >= 1999
    assert len(set(drawn) & {other[number] for number in range(2000)}) <= 1
    assert all(0 <= seed < 2**31 for seed in drawn)
    assert Seeds(None).base != Seeds(None).base
