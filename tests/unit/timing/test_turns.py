"""Turns of two sides over a pair of pipes: who measures what, and every way in which the other side may be lost."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.judge.policy import Decision, Policy
from pytest_gpuperf.model.evidence import Identity
from pytest_gpuperf.timing.paired_processes import pair_processes, zone_of
from pytest_gpuperf.timing.turns import (
    Arrived,
    Done,
    GoOn,
    Link,
    Measure,
    OtherSideLost,
    Taken,
    TakePad,
    TurnTimer,
    asked_for,
    run_there,
    serve_turns,
)

SOON_S = 5.0
IDENTITY = Identity(code="", launch="callable")


class Side:
    """A GPU and timer of one side; a sample takes what ``time_ns`` says."""

    def __init__(self, time_ns: Callable[[], float]) -> None:
        self.time_ns = time_ns
        self.asked: list[tuple[int, int]] = []
        self.pads: list[int] = []
        self.state = SimpleNamespace(sm_clock_mhz=1980, throttle_reasons=())
        self.timer: Any = SimpleNamespace(name="cupti", tick_ns=1.0, overhead_ns=0.0, measure=self.measure)
        self.device: Any = SimpleNamespace(
            synchronize=lambda: None, release_unused=lambda: None, state=lambda: self.state,
            arrays=SimpleNamespace(empty=lambda size, dtype: self.pads.append(size)),
        )  # fmt: skip

    def measure(self, slots: Sequence[Slot], cache: str) -> list[list[float]]:
        assert cache == "cold"
        self.asked += [(slot.samples, slot.dropped) for slot in slots]
        for slot in slots:
            slot.run()
        return [[self.time_ns() for _ in range(slot.samples)] for slot in slots]


@pytest.fixture
def links() -> Iterator[tuple[Link, Link]]:
    one, other = os.pipe(), os.pipe()
    pair = Link(one[0], other[1]), Link(other[0], one[1])
    yield pair
    for link in pair:
        with contextlib.suppress(OSError):
            link.close()


@contextlib.contextmanager
def serving(link: Link, side: Side, run: Callable[[], object] = lambda: None) -> Iterator[list[float]]:
    """The other side, in a thread, until it is told to go on."""
    samples: list[float] = []
    thread = threading.Thread(
        target=lambda: samples.extend(serve_turns(link, side.device, side.timer, run, None, SOON_S))
    )
    thread.start()
    yield samples
    thread.join(SOON_S)
    assert not thread.is_alive()


def noisy(mean_ns: float) -> Callable[[], float]:
    chance = random.Random(f"{mean_ns}")
    return lambda: mean_ns * chance.gauss(1.0, 0.002)


def test_each_side_takes_its_own_slots(links: tuple[Link, Link]) -> None:
    here, there = Side(lambda: 1.0), Side(lambda: 2.0)
    timer = TurnTimer(here.timer, links[0], SOON_S)
    slots = [Slot(run_there, 2), Slot(lambda: None, 3), Slot(lambda: None, 4), Slot(run_there, 5)]
    with serving(links[1], there) as samples:
        assert timer.measure(slots, "cold") == [[2.0] * 2, [1.0] * 3, [1.0] * 4, [2.0] * 5]
        links[0].send(GoOn())
    assert (here.asked, there.asked) == ([(3, 1), (4, 1)], [(2, 1), (5, 1)])
    assert (samples, timer.turns) == ([2.0] * 7, 2)


@pytest.mark.parametrize(
    ("ratio", "decision"), [(1.0, Decision.SAME), (1.02, Decision.SLOWER), (0.97, Decision.FASTER)]
)
def test_pairs_of_processes_decide(links: tuple[Link, Link], ratio: float, decision: Decision) -> None:
    here, there = Side(noisy(50_000.0 * ratio)), Side(noisy(50_000.0))
    with serving(links[1], there):
        pairing = pair_processes(
            here.device, here.timer, links[0], lambda: None, Policy(), seed=3, reset=None, cache="cold",
            duration_ns=50_000.0, budget_s=5.0,
        )  # fmt: skip
        links[0].send(GoOn())
    assert pairing.paired.decision is decision
    assert pairing.paired.ratio == pytest.approx(ratio, rel=0.002)
    assert len(here.pads) == len(there.pads) == len(pairing.blocks)
    assert here.pads != there.pads
    assert "paired by processes" in pairing.remarks[0]


def test_long_work_is_paired_launch_by_launch(links: tuple[Link, Link]) -> None:
    here, there = Side(noisy(20.8e6)), Side(noisy(20e6))
    with serving(links[1], there):
        pairing = pair_processes(
            here.device, here.timer, links[0], lambda: None, Policy(), seed=3, reset=None, cache="cold",
            duration_ns=20e6, budget_s=5.0,
        )  # fmt: skip
        links[0].send(GoOn())
    assert (pairing.long, pairing.paired.decision) == (True, Decision.SLOWER)


def test_what_fails_there_is_said_here_and_the_other_side_goes_on(links: tuple[Link, Link]) -> None:
    def broken() -> None:
        raise MemoryError("no more")

    with serving(links[1], Side(lambda: 1.0), broken):
        with pytest.raises(OtherSideLost, match="the other side failed: MemoryError: no more"):
            asked_for(links[0], Measure(slots=((1, 1),), cache="cold"), Taken, SOON_S)
        assert asked_for(links[0], TakePad(pad_bytes=512), Done, SOON_S) == Done()
        links[0].send(GoOn())


def test_a_side_that_is_gone_silent_or_talks_nonsense_is_lost(links: tuple[Link, Link]) -> None:
    with pytest.raises(OtherSideLost, match="did not answer in time"):
        links[0].receive(Taken, 0.01)
    links[1].send(Arrived(workload="a", identity=IDENTITY))
    with pytest.raises(OtherSideLost, match="what was not asked for"):
        links[0].receive(Taken, SOON_S)
    os.write(links[1]._writing, b"\xff\xff\xff\xff")
    with pytest.raises(OtherSideLost, match="4294967295 bytes at once"):
        links[0].receive(Taken, SOON_S)
    links[1].close()
    with pytest.raises(OtherSideLost, match="is gone"):
        links[0].receive(Taken, SOON_S)
    with pytest.raises(OtherSideLost, match="is gone"):
        links[0].send(GoOn())


def test_other_samples_than_asked_for_are_refused(links: tuple[Link, Link]) -> None:
    timer = TurnTimer(Side(lambda: 1.0).timer, links[0], SOON_S)
    links[1].send(Taken(times=[[1.0]]))
    with pytest.raises(OtherSideLost, match="other samples than it was asked for"):
        timer.measure([Slot(run_there, 2)], "cold")


def test_work_of_a_few_microseconds_has_a_wider_zone() -> None:
    assert zone_of(0.005, 0.01, 50_000.0) == (0.005, 0.01)
    assert zone_of(0.25, 0.5, 5_000.0) == (0.25, 0.5)
    assert zone_of(0.005, 0.01, 5_000.0) == (0.1, 0.2)
    assert zone_of(0.005, 0.01, 0.0) == (1.0, 2.0)
