"""Two sides over a pair of pipes: who measures what, and every way in which the other side may be lost."""

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
from pytest_gpuperf.judge.decision import ALPHA, Decision
from pytest_gpuperf.model.limits import TIGHT
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.process_reference import (
    Link,
    OtherSideLost,
    ProcessReference,
    Ready,
    RemoteSamples,
    Resume,
    TwoSidedTimer,
    limits_of_processes,
    run_there,
    serve_samples,
)
from pytest_gpuperf.timing.rounds import Workload

SOON_S = 5.0


class Side:
    """A GPU and timer of one side; a sample takes what ``time_ns`` says."""

    def __init__(self, time_ns: Callable[[], float]) -> None:
        self.time_ns = time_ns
        self.asked: list[tuple[int, int]] = []
        self.pads: list[int] = []
        self.done: list[str] = []
        self.timer: Any = SimpleNamespace(
            name="cupti", tick_ns=1.0, overhead_ns=0.0, measure=self.measure, kernel_breakdown=({"kernel": 1.0},)
        )
        state = SimpleNamespace(sm_clock_mhz=1980, throttle_reasons=(), other_processes=())
        self.device: Any = SimpleNamespace(
            synchronize=lambda: self.done.append("synchronize"), state=lambda: state,
            release_unused=lambda: self.done.append("release"), arrays=SimpleNamespace(empty=self.take),
        )  # fmt: skip

    def take(self, size: int, dtype: str) -> None:
        assert (dtype, self.done[-2:]) == ("uint8", ["synchronize", "release"])
        self.pads.append(size)

    def measure(self, slots: Sequence[Slot], cache: str) -> list[list[float]]:
        assert cache == "cold"
        self.asked += [(slot.samples, slot.dropped) for slot in slots]
        for slot in slots:
            if slot.reset is not None:
                slot.reset()
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
def serving(
    link: Link, side: Side, run: Callable[[], object] = lambda: None, reset: Callable[[], object] | None = None
) -> Iterator[None]:
    """The other side, in a thread, until it may resume its test."""
    thread = threading.Thread(target=serve_samples, args=(link, side.device, side.timer, Workload(run, reset)))
    thread.start()
    yield
    thread.join(SOON_S)
    assert not thread.is_alive()


def noisy(mean_ns: float) -> Callable[[], float]:
    chance = random.Random(f"{mean_ns}")
    return lambda: mean_ns * chance.gauss(1.0, 0.002)


def test_each_side_takes_its_own_slots(links: tuple[Link, Link]) -> None:
    here, there, words = Side(lambda: 1.0), Side(lambda: 2.0), list[str]()
    timer = TwoSidedTimer(here.timer, links[0], SOON_S)
    assert timer.tick_ns == 1.0
    slots = [Slot(run_there, 2), Slot(lambda: None, 3), Slot(lambda: None, 4), Slot(run_there, 5)]
    with serving(links[1], there, lambda: words.append("run"), lambda: words.append("reset")):
        timer.pad_bytes = 512
        assert timer.measure(slots, "cold") == [[2.0] * 2, [1.0] * 3, [1.0] * 4, [2.0] * 5]
        links[0].send(Resume())
    assert (here.asked, there.asked, words) == ([(3, 1), (4, 1)], [(2, 1), (5, 1)], ["reset", "run"] * 2)
    assert timer.kernels_there == {"kernel": 1.0}
    assert (there.pads, there.done) == ([512], ["synchronize", "release", *["synchronize"] * 2]), "moved once"


@pytest.mark.parametrize(("ratio", "mean_ns", "decision"), [
    (1.0, 5e4, Decision.SAME), (1.02, 5e4, Decision.SLOWER), (0.97, 5e4, Decision.FASTER), (1.04, 2e7, Decision.SLOWER),
])  # fmt: skip
def test_pairs_of_processes_decide(links: tuple[Link, Link], ratio: float, mean_ns: float, decision: Decision) -> None:
    here, there, resets = Side(noisy(mean_ns * ratio)), Side(noisy(mean_ns)), list[int]()
    with serving(links[1], there):
        workload = Workload(lambda: None, lambda: resets.append(1))
        reference = ProcessReference(here.device, here.timer, links[0], workload, SOON_S)
        found = compare(here.device, reference, TIGHT, ALPHA, seed=3, duration_ns=mean_ns, budget_s=SOON_S).comparison
        links[0].send(Resume())
    assert found.decision(TIGHT, ALPHA) is decision
    assert found.ratio == pytest.approx(ratio, rel=0.002)
    assert len(here.pads) == len(there.pads) == len(set(there.pads))
    assert here.pads != there.pads
    assert resets


def test_a_failure_there_is_reported_here_and_the_other_side_goes_on(links: tuple[Link, Link]) -> None:
    def broken() -> None:
        raise MemoryError("no more")

    timer = TwoSidedTimer(Side(lambda: 1.0).timer, links[0], SOON_S)
    with serving(links[1], Side(lambda: 1.0), broken):
        for _ in range(2):
            with pytest.raises(OtherSideLost, match=r"^the other side failed: MemoryError: no more$"):
                timer.measure([Slot(run_there, 1)], "cold")
        links[0].send(Resume())


def test_a_side_that_ended_is_silent_or_sends_nonsense_is_lost(links: tuple[Link, Link]) -> None:
    with pytest.raises(OtherSideLost, match=r"^the other process did not answer in time$"):
        links[0].receive(RemoteSamples, 0.01)
    links[1].send(Ready(workload="a"))
    with pytest.raises(OtherSideLost, match=r"^the other process sent an unexpected message \("):
        links[0].receive(RemoteSamples, SOON_S)
    links[1].close()
    with pytest.raises(OtherSideLost, match=r"^the other process has ended$"):
        links[0].receive(RemoteSamples, SOON_S)
    with pytest.raises(OtherSideLost, match=r"^the other process has ended \(Broken pipe\)$"):
        links[0].send(Resume())


@pytest.mark.parametrize(("asked", "duration_ns", "wanted"), [
    ((0.005, 0.01), 5e4, (0.005, 0.01)), ((0.005, 0.01), 1e4, (0.005, 0.01)), ((0.25, 0.5), 5e3, (0.25, 0.5)),
    ((0.1, 0.11), 5e3, (0.1, 0.11)), ((0.005, 0.01), 5e3, (0.1, 0.2)), ((0.005, 0.3), 5e3, (0.1, 0.3)),
    ((0.005, 0.01), 7e3, (0.071, 0.142)), ((0.005, 0.01), 0.0, (1.0, 2.0)),
])  # fmt: skip
def test_limits_of_short_work(asked: tuple[float, float], duration_ns: float, wanted: tuple[float, float]) -> None:
    assert limits_of_processes(type(TIGHT)(*asked), duration_ns) == wanted
