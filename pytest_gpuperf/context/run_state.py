"""What one process keeps from test to test: what waits for confirmation, which error rates were given out."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.context import stash

if TYPE_CHECKING:
    from pytest_gpuperf.judge.suspects import Suspect
    from pytest_gpuperf.model.evidence import Key
    from pytest_gpuperf.model.result import SelfPairReading, WorkloadEvidence
    from pytest_gpuperf.timing.process_opponent import Link


SELF_PAIRS = 3
"""Tests of a run whose first launch is paired with itself (``workload.gate``)."""


class RunState:
    """Of this process alone: pytest-xdist's workers do not share it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._start_s = 0.0
        self._test_began = "", 0.0
        self._shares: dict[str, int] = {}
        """Error rates that were given out, by the test's node id."""
        self._suspects: dict[Key, list[Suspect]] = {}
        self.confirmed = 0
        """Tests of which a second process has confirmed a regression."""
        self.self_pairs: set[str] = set()
        """Node ids of tests whose first launch is still to be paired with itself."""
        self.self_pair_readings: dict[str, SelfPairReading] = {}
        """What came of it, by node id."""
        self.link: Link | None = None
        """To the process that gates, in one that stands for another revision."""
        self.gpu_lost = ""
        """Which test left the GPU unusable for this process; empty while it is usable."""
        self.recorded_ns = 0.0
        """What the workload in hand took when it was recorded; 0 if that is not known."""

    def begin_test(self, item: pytest.Item) -> None:
        """Note when a test began, and, before the first one, what this process's start took."""
        now = time.perf_counter()
        if not self._start_s:
            self._start_s = now - stash.PROCESS_BEGAN
        self._test_began = item.nodeid, now

    def seconds_of_this_test(self, item: pytest.Item) -> float:
        """Wall-clock time that a test, and the start of a process for it with imports and collection, has taken."""
        node, began = self._test_began
        return self._start_s + (time.perf_counter() - began if node == item.nodeid else 0.0)

    def next_share(self, node_id: str) -> float:
        """The error rate of a test's next workload; ask once for each, before its first block is taken."""
        from pytest_gpuperf.judge.decision import share  # noqa: PLC0415 SciPy comes with it

        self._shares[node_id] = self._shares.get(node_id, 0) + 1
        finding = self._config.stash.get(stash.FINDING, None)
        return share(len(finding.gated) if finding is not None else 1, self._shares[node_id])

    def choose_self_pairs(self, items: Sequence[pytest.Item]) -> None:
        """Draw the tests whose first launch is paired with itself; the same ones in every worker of a run."""
        run = getattr(self._config, "workerinput", {}).get("testrunuid")
        nodes = sorted(item.nodeid for item in items if "gpuperf" in getattr(item, "fixturenames", ()))
        self.self_pairs = set(random.Random(run).sample(nodes, min(SELF_PAIRS, len(nodes))))

    def suspect(self, suspects: Iterable[Suspect | None]) -> None:
        """Let these wait for a second process, at the end of their test."""
        for one in suspects:
            if one is not None:
                self._suspects.setdefault(one.judgement.key, []).append(one)

    def take_suspects(self, workloads: Iterable[WorkloadEvidence]) -> list[Suspect]:
        """Those of these workloads, which wait no more."""
        return [one for work in workloads for one in self._suspects.pop(work.key, ())]

    @property
    def has_suspects(self) -> bool:
        return bool(self._suspects)
