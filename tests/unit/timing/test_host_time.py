"""Times of the CPU: what is in a ratio, and what is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

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
    resets = list[str]()
    run, reset = clock.taking(200), clock.taking(70, resets, "reset")
    found = host_time(run, reset, lambda: None, 1e3, driver="580.1", budget_s=1.0)
    assert (found.ratios, found.time_ns, found.cpu) == ((4.0,), 200.0, cpu_model())
    assert len(resets) == (1 + 2 * module.EXCHANGES) * module.MOST_CALLS
    assert found.made_by.endswith(f", reference {module.REFERENCE}, driver 580.1")


def test_a_machine_that_grows_steadily_slower_moves_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = itertools.count(100)
    monkeypatch.setattr(module, "cost_of", lambda *_: float(next(grown)))
    monkeypatch.setattr(module, "_fixed_cost", lambda: float(next(grown)))
    assert host_time(lambda: None, None, lambda: None, 1e3, driver="", budget_s=1.0).ratios == (1.0,)


@pytest.mark.parametrize(("taking_ns", "exchanges"), [(1000, module.EXCHANGES), (1_000_000_000, 1)])
def test_exchanges_end_with_the_budget(monkeypatch: pytest.MonkeyPatch, taking_ns: int, exchanges: int) -> None:
    """And a call that waits for the GPU is not made more often than it has to."""
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(module.time, "perf_counter_ns", clock)
    monkeypatch.setattr(module, "interpreter_work", clock.taking(50))
    host_time(clock.taking(taking_ns, done, "run"), None, lambda: None, 1e9, driver="", budget_s=5.0)
    assert len(done) == (1 + 2 * exchanges) * module.LEAST_CALLS


def test_the_call_alone_is_timed_and_neither_the_reset_nor_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(module.time, "perf_counter_ns", clock)
    run, reset, wait = (clock.taking(ns, done, word) for ns, word in ((30, "run"), (500, "reset"), (9000, "wait")))
    assert cost_of(run, reset, wait, 3) == 30
    assert done == ["wait", *["reset", "run"] * 3, "wait"]


@pytest.mark.parametrize(("duration_ns", "calls"), [(0.0, 64), (5e3, 64), (1e6, 20), (1e9, 4)])
def test_a_slot_enqueues_no_more_than_twenty_milliseconds(duration_ns: float, calls: int) -> None:
    assert calls_of(duration_ns) == calls


@pytest.mark.parametrize(("text", "name"), [
    ("processor : 0\nmodel name\t: A  CPU @ 3 GHz: fast\n", "A CPU @ 3 GHz: fast"),
    ("model name : " + "x" * 200, "x" * 100),
    ("processor : 0\n", module.platform.machine()),
    (None, module.platform.machine()),
])  # fmt: skip
def test_the_cpu_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, name: str) -> None:
    monkeypatch.setattr(module, "Path", {"/proc/cpuinfo": tmp_path / "cpuinfo"}.__getitem__)
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    assert cpu_model() == name


def test_the_fixed_work_goes_on_for_some_microseconds() -> None:
    assert 1000 < module._fixed_cost() < 1e7
