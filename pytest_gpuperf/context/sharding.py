"""Keeps the tests of one shard (``--gpuperf-shard=I/N``), before pytest-xdist hands any out.

What a test is expected to take is computed from the committed baselines alone: a figure that only one machine knows
would let shards disagree.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator

import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.shard_plan import Planned, Shard, digest_of, shards_of
from pytest_gpuperf.context.xdist_groups import group_of, plain_id

TEST_S = 1.0
"""Of a test without timed workloads: its fixtures, its compilation and its check."""
WORKLOAD_S = 0.1
LAUNCHES = 100
"""What a workload adds: as many runs of the time on record, and this besides."""


class Sharding:
    """A plugin that ``plugin`` registers in every process of a run that is a shard."""

    def __init__(self, config: pytest.Config, shard: tuple[int, int]) -> None:
        self._config = config
        self._shard = Shard(*shard)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """After every other plugin has deselected what it wants to, whatever order it left."""
        yield
        nodes = {item: plain_id(item) for item in items}
        seconds = self._seconds(set(nodes.values()))
        plan = shards_of(
            (Planned(node, group_of(item) or node, seconds[node]) for item, node in nodes.items()), self._shard.of
        )
        self._config.stash[stash.SHARD_PLAN] = digest_of(plan)
        others = [item for item in items if plan[nodes[item]] != self._shard.index]
        items[:] = [item for item in items if plan[nodes[item]] == self._shard.index]
        self._config.stash[stash.OTHER_SHARDS] = frozenset(nodes[item] for item in others)
        if others:
            self._config.hook.pytest_deselected(items=others)

    def _seconds(self, nodes: set[str]) -> dict[str, float]:
        """By node id; all alike where no committed record can be read."""
        options, expected = self._config.stash[stash.OPTIONS], dict.fromkeys(nodes, TEST_S)
        if options.against:  # that revision's times are taken by each machine itself
            return expected
        try:
            recorded = _recorded_seconds(stash.run_of(self._config).store, nodes)
        except BaselineError:  # the tests say so, on every shard alike
            return expected
        return {node: TEST_S + recorded.get(node, 0.0) for node in sorted(nodes)}


def _recorded_seconds(store: BaselineStore, nodes: set[str]) -> dict[str, float]:
    """What the timed workloads on record add, on the GPU model where it is the most.  Raises ``BaselineError``."""
    found: dict[str, float] = {}
    for device in store.devices():
        for module in sorted({node.partition("::")[0] for node in nodes}):
            for test, workloads in store.time_tests(device, module).items():
                rounds = ([one.midmean for one in record.rounds] for record in workloads.values())
                medians = [statistics.median(times_ns) if times_ns else 0.0 for times_ns in rounds]
                seconds = sum(WORKLOAD_S + LAUNCHES * median_ns * 1e-9 for median_ns in sorted(medians))
                node = f"{module}::{test}"
                found[node] = max(seconds, found.get(node, 0.0))
    return found
