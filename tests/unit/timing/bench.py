"""A GPU and its timer whose every sample takes what a test says."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from pytest_gpuperf.device.interface import Slot
from pytest_gpuperf.model.device_facts import DeviceState
from pytest_gpuperf.timing.rounds import Workload


class Bench:
    """Device, timer and reference: sample i takes ``base_ns * noise(i)``, and ``ratio`` times that of the candidate."""

    name = "cupti"
    tick_ns = 1.0
    overhead_ns = 0.0
    kernel_breakdown = elapsed_ns = ()
    remarks: tuple[str, ...] = ()

    def __init__(
        self, ratio: float = 1.0, *, base_ns: float = 1e5, noise: Callable[[int], float] = lambda i: 1.0,
        of_candidate: Callable[[int], float] = lambda i: 1.0, each_s: float = 1e-4,
    ) -> None:  # fmt: skip
        self.ratio, self.base_ns, self.each_s = ratio, base_ns, each_s
        self.noise, self.of_candidate = noise, of_candidate
        self.now_s, self.taken, self.placed, self.left = 1000.0, 0, [0][:0], False
        self.calls: list[list[Slot]] = []
        self.states = iter(lambda: DeviceState(sm_clock_mhz=1980), None)
        self.sides = Workload(lambda: None), Workload(lambda: None)
        self.timer: Any = self
        self.facts = SimpleNamespace(memory_bytes=80 << 30)

    def measure(self, slots: Sequence[Slot], cache: str) -> list[list[float]]:
        assert cache == "cold"
        self.calls.append(list(slots))
        found = []
        for slot in slots:
            mine = slot.run is self.sides[1].run
            of_slot = []
            for _ in range(slot.samples):
                own = self.ratio * self.of_candidate(self.taken) if mine else 1.0
                of_slot.append(self.base_ns * own * self.noise(self.taken))
                self.taken += 1
            found.append(of_slot)
            self.now_s += (slot.samples + slot.dropped) * self.each_s
        return found

    def state(self) -> DeviceState:
        return next(self.states)

    def clock(self) -> float:
        return self.now_s

    def place(self, call: int, coin: random.Random) -> None:
        coin.random()
        self.placed.append(call)

    def finish(self) -> None:
        self.left = True


def jitter(sd: float, seed: int = 0) -> Callable[[int], float]:
    noise = np.exp(sd * np.random.default_rng(seed).standard_normal(200_000))
    return lambda index: float(noise[index])
