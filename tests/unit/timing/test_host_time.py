"""Times of the CPU: what is in a ratio, and what is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from pytest_gpuperf.timing import host_time as module
from pytest_gpuperf.timing.host_time import calls_of, cost_of, cpu_model, host_time


class Clock:
    """Stands still but for what is done."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns

    def taking(self, ns: int, done: list[str] | None = None, word: str = "") -> Callable[[], None]:
        def work() -> None:
            self.ns += ns
            if done is not None:
                done.append(word)

        return work


def test_a_host_time_is_a_ratio_to_fixed_work_and_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(module.time, "perf_counter_ns", clock)
    monkeypatch.setattr(module, "interpreter_work", clock.taking(50))
    found = host_time(clock.taking(200), None, lambda: None, 1e3, driver="580.1", budget_s=1.0)
    assert (found.ratios, found.time_ns) == ((4.0,), 200.0)
    assert found.made_by.endswith(f", reference {module.REFERENCE}, driver 580.1")


def test_a_machine_that_grows_steadily_slower_moves_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = itertools.count(100)
    monkeypatch.setattr(module, "cost_of", lambda *_: float(next(grown)))
    monkeypatch.setattr(module, "_fixed_cost", lambda: float(next(grown)))
    assert host_time(lambda: None, None, lambda: None, 1e3, driver="", budget_s=1.0).ratios == (1.0,)


@pytest.mark.parametrize(("taking_ns", "exchanges"), [(1000, module.EXCHANGES), (1_000_000_000, 1)])
def test_exchanges_end_with_the_budget(monkeypatch: pytest.MonkeyPatch, taking_ns: int, exchanges: int) -> None:
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(module.time, "perf_counter_ns", clock)
    monkeypatch.setattr(module, "interpreter_work", clock.taking(50))
    host_time(clock.taking(taking_ns, done, "run"), None, lambda: None, 1e9, driver="", budget_s=5.0)
    assert len(done) == (1 + 2 * exchanges) * module.LEAST_CALLS


def test_the_call_alone_is_timed_and_neither_the_reset_nor_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(module.time, "perf_counter_ns", clock)
    run, reset, wait = (
        clock.taking(ns, done, word) for ns, word in ((30, "run"), (500, "reset"), (9000, "wait"))
    )  # fmt: skip
    assert cost_of(run, reset, wait, 3) == 30
    assert done == ["wait", *["reset", "run"] * 3, "wait"]


def test_a_call_that_waits_for_the_gpu_is_not_made_more_often_than_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(module.time, "perf_counter_ns", clock)
    cost_of(clock.taking(1_000_000_000, done, "run"), None, lambda: None, 64)
    assert len(done) == module.LEAST_CALLS


@pytest.mark.parametrize(("duration_ns", "calls"), [(0.0, 64), (5e3, 64), (1e6, 20), (1e9, 4)])
def test_a_slot_enqueues_no_more_than_twenty_milliseconds(duration_ns: float, calls: int) -> None:
    assert calls_of(duration_ns) == calls


def test_the_machine_is_named() -> None:
    assert cpu_model()
    assert len(cpu_model()) <= 100
