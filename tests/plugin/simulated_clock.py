"""A clock of the host that goes on by the work that is counted, whatever else the machine does meanwhile."""

from __future__ import annotations

import os
import random

import pytest

from pytest_gpuperf.workload import figures

ASKED_NS, FIXED_NS = 100.0, 5000.0
SCATTER = 0.01


class HostClock:
    """In place of the module ``time``."""

    def __init__(self) -> None:
        self._now_ns = 0.0
        self._chance = random.Random(os.getpid())

    def perf_counter_ns(self) -> int:
        self._now_ns += ASKED_NS
        return int(self._now_ns)

    def work(self, ns: float) -> None:
        """Go on by so much, more or less."""
        self._now_ns += ns * self._chance.lognormvariate(0.0, SCATTER)


HOST = HostClock()


def count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this clock time what a test and the fixed work take of the host."""
    monkeypatch.setattr(figures, "time", HOST)
    monkeypatch.setattr(figures, "interpreter_work", lambda: HOST.work(FIXED_NS))
