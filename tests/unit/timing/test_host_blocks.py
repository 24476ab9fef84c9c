"""Blocks of times of the CPU: what is in a ratio, and what is not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from pytest_gpuperf.timing import host_blocks
from pytest_gpuperf.timing.host_blocks import blocks_beside, calls_of, cpu_model, host_cost, interpreter


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


def test_a_block_is_the_ratio_of_both_and_the_time_of_the_workload() -> None:
    block = next(blocks_beside(lambda: 200.0, lambda: 50.0, 1))
    assert block.r == pytest.approx(math.log(4))
    assert block.time_ns == 200.0


def test_a_machine_that_grows_steadily_slower_moves_no_block_of_two_slots() -> None:
    grown = itertools.count(100)

    def cost() -> float:
        return float(next(grown))

    blocks = blocks_beside(cost, lambda: cost(), 1)
    assert [next(blocks).r for _ in range(5)] == pytest.approx([0.0] * 5, abs=1e-12)


def test_a_coin_draws_who_begins_and_each_has_warmed_up() -> None:
    order: list[str] = []

    def side(name: str) -> Callable[[], float]:
        return lambda: (order.append(name), 1.0)[1]

    blocks = blocks_beside(side("work"), side("fixed"), 3)
    for _ in range(40):
        next(blocks)
    assert order[:2] == ["work", "fixed"]
    pairs = list(zip(order[2::4], order[3::4], strict=True))
    assert {("work", "fixed"), ("fixed", "work")} == set(pairs)


def test_the_call_alone_is_timed_and_neither_the_reset_nor_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(host_blocks.time, "perf_counter_ns", clock)
    run, reset, wait = (
        clock.taking(ns, done, word) for ns, word in ((30, "run"), (500, "reset"), (9000, "wait"))
    )  # fmt: skip
    assert host_cost(run, reset, wait, 3)() == 30
    assert done == ["wait", *["reset", "run"] * 3, "wait"]


def test_a_call_that_waits_for_the_gpu_is_not_made_more_often_than_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done = Clock(), list[str]()
    monkeypatch.setattr(host_blocks.time, "perf_counter_ns", clock)
    host_cost(clock.taking(1_000_000_000, done, "run"), None, lambda: None, 64)()
    assert len(done) == host_blocks.LEAST_CALLS


@pytest.mark.parametrize(("duration_ns", "calls"), [(0.0, 64), (5e3, 64), (1e6, 20), (1e9, 4)])
def test_a_slot_enqueues_no_more_than_twenty_milliseconds(duration_ns: float, calls: int) -> None:
    assert calls_of(duration_ns) == calls


def test_the_machine_is_named() -> None:
    assert cpu_model()
    assert len(cpu_model()) <= 100
    assert interpreter("580.1").endswith(", driver 580.1")
