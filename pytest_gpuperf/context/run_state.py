"""What one process keeps from test to test: what waits for confirmation, what was spent, what the machine showed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_gpuperf.config.options import Options
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.worker import worker_number
from pytest_gpuperf.judge.canary_shift import furthest

if TYPE_CHECKING:
    from pytest_gpuperf.judge.error_budget import Spending
    from pytest_gpuperf.model.evidence import Key
    from pytest_gpuperf.model.result import SelfPairReading
    from pytest_gpuperf.timing.pending_confirmations import BesidePending, PendingConfirmation
    from pytest_gpuperf.timing.turns import Link


class RunState:
    """Of this process alone: pytest-xdist's workers do not share it."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        self._shards = 1 if options.shard is None else options.shard[1]
        self._hypotheses = 0
        self._unchanged = 0
        self._start_s = 0.0
        self._test_began = "", 0.0
        self.pending: dict[Key, PendingConfirmation] = {}
        """Workloads that were slower in this process and wait for the end of their test to be confirmed."""
        self.pending_beside: dict[Key, list[BesidePending]] = {}
        """Times of the CPU that were worse in this process and wait for the end of their test to be confirmed."""
        self.confirming_blocks: dict[Key, dict[str, tuple[float, ...]]] = {}
        """What a confirming process found of them: log ratios of its blocks to the canary, by kind."""
        self.confirmations_left = options.confirmations
        """Tests of which a second process may still confirm something; one that confirms nothing costs none."""
        self.self_pairs: set[str] = set()
        """Node ids of tests whose first launch is still to be paired with itself."""
        self.self_pair_readings: dict[str, SelfPairReading] = {}
        """What came of it, by node id."""
        self.canary_shifts: dict[str, float] = {}
        """Log of each canary's time here over that on record, where it moved the most; by name."""
        self.unchanged_shifts: dict[Key, float] = {}
        """Log of time over record of the unchanged workloads so far whose record is of this GPU."""
        self.distrusted: dict[Key, str] = {}
        """Why workloads were not paired with what their baselines have: it came with the change under test."""
        self.link: Link | None = None
        """To the process that gates, in one that stands for another revision."""
        self.gpu_lost = ""
        """Which test left the GPU unusable for this process; empty while it is usable."""
        self.recorded_ns = 0.0
        """What the workload in hand took when it was recorded; 0 if that is not known."""
        self.cubins: dict[str, bytes] = {}
        """Machine code of the timed kernels by SHA-256, kept for an update to store."""

    @property
    def left_over(self) -> dict[str, int]:
        """What a process that follows this one must know of it."""
        return {"hypotheses": self._hypotheses, "unchanged": self._unchanged, "confirmations": self.confirmations_left}

    def take_over(self, left: Mapping[str, int]) -> None:
        """Spend on from where the process before this one was."""
        self._hypotheses, self._unchanged = left["hypotheses"], left["unchanged"]
        self.confirmations_left = left["confirmations"]

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

    def note_distrust(self, key: Key, why: str) -> None:
        """Keep why a workload is not paired, for the end of the run; nothing where ``why`` is empty."""
        if why:
            self.distrusted[key] = why

    @cached_property
    def spending(self) -> Spending:
        """This process's part of the run's error rate."""
        from pytest_gpuperf.judge.error_budget import Spending, shard_alpha, spending_of  # noqa: PLC0415 SciPy comes with it

        alpha = shard_alpha(self._shards)
        given = getattr(self._config, "workerinput", None)
        if given is None:
            return Spending(alpha)
        number = worker_number(self._config)  # None of a worker that --tx gave a name: one of the first, then
        return spending_of(number or 0, int(given["workercount"]), alpha)

    def next_share(self) -> float:
        """The error rate of the next workload that may be called slower; ask once, before its first time is taken."""
        self._hypotheses += 1
        return self.spending.share(self._hypotheses)

    def next_unchanged_share(self) -> float:
        """The error rate at which the next unchanged workload may be UNEXPLAINED, of a total of as much again."""
        self._unchanged += 1
        return self.spending.share(self._unchanged)

    def note_canaries(self, shifts: Mapping[str, float]) -> None:
        """Keep what moved more than is known of it so far; ``shifts`` are logs, by canary."""
        self.canary_shifts = furthest([self.canary_shifts, shifts])
