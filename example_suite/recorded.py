"""What is on record of the suite's workloads: times, gains, and what the two of a pair differ in."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pairs import Pair

from pytest_gpuperf.advise.comparison import Extent
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.explain import Estimates, VersionPair, known_launch
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.model.warp_estimate import WarpEstimate

GPU = "nvidia-h200"
"""Whose times are on record."""
ARCH = "sm_90"
SUITE = Path(__file__).parent
BASELINES = SUITE.parent / "baselines"
OUTCOMES = SUITE / "outcomes" / f"{GPU}.json"
"""What a run found of the claims."""

Difference = Literal["code", "launch", "data", "callable"]


class Recorded:
    """The suite's baselines, and what became of its claims, read once."""

    def __init__(self, baselines: Path = BASELINES, outcomes: Path = OUTCOMES) -> None:
        self._outcomes = outcomes
        self._store = BaselineStore(baselines)
        self._estimates = Estimates(self._store, {}, CompileCache())

    def time(self, pair: Pair, workload: str) -> TimeRecord | None:
        return self._store.time(GPU, _key(pair, workload))

    def static(self, pair: Pair, workload: str, arch: str = ARCH) -> StaticRecord | None:
        """Of any compiler version, or of code that is for this architecture alone (``sm_90a``).

        None for a function that launches several kernels.
        """
        key = _key(pair, workload)
        for target in (arch, f"{arch}a"):
            for toolchain in self._store.compilers(target, key):
                found = self._store.static(target, key, toolchain)
                if found is not None:
                    return found
        return None

    def prepare_estimates(self, several: Iterable[VersionPair]) -> None:
        """Make estimates of several pairs together."""
        self._estimates.prepare(several)

    def estimates(self, compared: VersionPair) -> tuple[WarpEstimate | None, WarpEstimate | None]:
        """Estimates that compare: of both as they were launched, or of neither."""
        return self._estimates.of(compared)

    def launch(self, pair: Pair, workload: str) -> KnownLaunch | None:
        """Sizes and integers of a launch; None where none is on record."""
        time = self.time(pair, workload)
        return known_launch(time.identity) if time is not None else None

    def grid(self, pair: Pair, workload: str, arch: str = ARCH) -> Extent | None:
        """Blocks of a launch: of the timed one, or of the one without a GPU."""
        launched = self.time(pair, workload) or self.static(pair, workload, arch)
        return launched.grid if launched is not None else None

    def time_ns(self, pair: Pair, workload: str) -> float | None:
        """Nanoseconds of a run; None for what is not on record."""
        record = self.time(pair, workload)
        return mean_time_ns(record.rounds) if record and record.rounds else None

    def time_ratio(self, pair: Pair) -> float | None:
        """How many times longer the naive workload takes, by the plugin's times; whatever work each does."""
        naive, optimised = self.time_ns(pair, pair.naive), self.time_ns(pair, pair.optimised)
        return naive / optimised if naive and optimised else None

    def gain(self, pair: Pair) -> float | None:
        """How many times longer the naive workload takes for the same work; by the clock on the wall, if need be."""
        if pair.wall:
            return self._figures.get(pair.wall)
        ratio = self.time_ratio(pair)
        return None if ratio is None else pair.work * ratio

    @functools.cached_property
    def _figures(self) -> Mapping[str, float]:
        """Figures of the claims on record, by id; empty where none are."""
        if not self._outcomes.exists():
            return {}
        lines = json.loads(self._outcomes.read_text(encoding="utf-8"))["claims"]
        return {line["id"]: line["measured"] for line in lines if line["measured"] is not None}

    def difference(self, pair: Pair) -> Difference:
        """What the two differ in: the machine code; or else the launch; or else nothing but data.

        A callable, which launches several kernels, has no machine code of its own.
        """
        naive, optimised = self.static(pair, pair.naive), self.static(pair, pair.optimised)
        if naive is None or optimised is None:
            return "callable"
        if naive.profile.code_hash != optimised.profile.code_hash:
            return "code"
        times = self.time(pair, pair.naive), self.time(pair, pair.optimised)
        arguments = [[word.partition(" ")[0] for word in one.identity.arguments] for one in times if one]
        if len(arguments) == 2 and arguments[0] != arguments[1]:
            return "data"
        launches = [one.identity.launch for one in times if one]
        if len(launches) == 2:
            return "launch" if launches[0] != launches[1] else "data"
        blocks = [(one.block, one.dynamic_shared_bytes) for one in (naive, optimised)]
        return "launch" if blocks[0] != blocks[1] else "data"


def _key(pair: Pair, workload: str) -> Key:
    return Key(module=f"{SUITE.name}/{pair.module}", test=pair.test, workload=workload)
