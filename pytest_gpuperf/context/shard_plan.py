"""Which part of a run's tests each of its shards runs: the same on every machine, whatever order tests come in.

Pure.  Tests that have to stay together are one unit; units go to the shard with the least to do, the longest first.
What no shard runs, such as the record of a deleted test, belongs to the shard that the hash of its node id names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
from collections.abc import Iterable, Mapping

from pytest_gpuperf.model.base_record import Record


class Shard(Record, frozen=True):
    """One part of a run."""

    index: int
    """From 1 to ``of``."""
    of: int

    def answers_for(self, node: str) -> bool:
        """Whether this shard says what became of a record whose test no shard runs."""
        return int(hash_of([node]), 16) % self.of + 1 == self.index


@dataclasses.dataclass(frozen=True)
class Planned:
    """One test of the run."""

    node: str
    unit: str
    """Tests of equal units are run by one shard."""
    seconds: float
    """What it is expected to take; finite and not negative."""


def shards_of(tests: Iterable[Planned], of: int) -> dict[str, int]:
    """The shard, from 1 to ``of``, of each test by node id: longest processing time first, ties by name."""
    seconds: dict[str, float] = {}
    units: dict[str, str] = {}
    for test in sorted(set(tests), key=lambda one: (one.node, one.unit, one.seconds)):  # sums of floats have an order
        if test.node not in units:
            units[test.node] = test.unit
            seconds[test.unit] = seconds.get(test.unit, 0.0) + test.seconds
    loads = [(0.0, 0, shard) for shard in range(1, of + 1)]
    chosen: dict[str, int] = {}
    for unit in sorted(seconds, key=lambda one: (-seconds[one], one)):
        load, count, shard = loads[0]
        chosen[unit] = shard
        heapq.heapreplace(loads, (load + seconds[unit], count + 1, shard))
    return {node: chosen[unit] for node, unit in units.items()}


def digest_of(plan: Mapping[str, int]) -> str:
    """Equal for equal plans; empty for a plan without tests."""
    return hash_of(f"{node} {shard}" for node, shard in sorted(plan.items())) if plan else ""


def hash_of(words: Iterable[str]) -> str:
    """SHA-256 of words in their order, in hexadecimal digits."""
    return hashlib.sha256("\n".join(words).encode(errors="surrogatepass")).hexdigest()
