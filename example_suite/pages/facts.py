"""The facts of the pages: pairs, lessons, the words of the tour, and the committed figures of both sides of a pair.

A lesson is ``lesson_data/FAMILY.json``:

question    what the family asks, in a sentence or two
pairs       optional: optimised workloads whose pairs are shown in detail; else the first pair of the family
kernels     optional: two kernels to compare in the source, where a family has no pairs
exercise    a change of one file (``replace``, which is there once, ``by``) that leaves results right, words that the
            gate then prints without a GPU (``see``), the reason (``because``), and ``"fails": false`` if the run stays
            green without a GPU
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns

GPU = "nvidia-h200"
"""Whose times are committed."""
ARCH = "sm_90"
SUITE = Path(__file__).parents[1]
README = SUITE / "README.md"
BASELINES = SUITE.parent / "baselines"
CLAIMS = SUITE / "claims" / f"{GPU}.json"
COUNTERS = SUITE.parent / "tests" / "replays" / "counters" / f"{GPU}.json"
_STATION = re.compile(
    r"(?m)^### (?P<section>.+)$"
    r"|^\*\*(?P<family>\w+)\*\* \[(?P<sources>[\w, ]+)\]: (?P<answer>.+(?:\n(?!<!--|\*|\n).+)*)"
)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two workloads that do the same, one of them slowly; one test measures both, under these names.

    A test's optimised workload has one naive one: of two that differ in two things, there is a third one in between.
    """

    family: str
    """``transpose32``: ``kernels/transpose32.cu`` and ``test_transpose32.py``."""
    test: str
    optimised: str
    naive: str
    cause: str
    """What dominates, by its key among the causes of ``pytest_gpuperf.advise``; empty if no single one does."""
    why: str
    """What the naive one does."""
    work: float = 1.0
    """How many times the naive one's work the optimised one does."""
    wall: str = ""
    """Claim whose figure is the gain by the wall clock: of callables that overlap the launches that the plugin adds."""

    @property
    def names(self) -> tuple[str, str]:
        return self.naive, self.optimised

    @property
    def title(self) -> str:
        return f"{self.optimised} over {self.naive}"

    @property
    def gain_of(self) -> str:
        """What a gain is of, where it is not simply that of two times for the same work."""
        if self.wall:
            return f" by the wall clock ({self.wall})"
        return f" for {self.work:g} times its work" if self.work > 1 else ""

    def key(self, workload: str) -> Key:
        return Key(module=f"{SUITE.name}/test_{self.family}.py", test=self.test, workload=workload)


PAIRS = tuple(Pair(**line) for line in json.loads((SUITE / "pairs.json").read_text(encoding="utf-8")))


@functools.cache
def lesson_of(family: str) -> Any:
    """The fields of a lesson as attributes."""
    text = (SUITE / "lesson_data" / f"{family}.json").read_text(encoding="utf-8")
    optional = {"pairs": (), "kernels": (), "fails": True}
    return json.loads(text, object_hook=lambda given: SimpleNamespace(**optional | given))


def command(family: str) -> list[str]:
    """Of an exercise."""
    return ["pytest", "--gpuperf", f"--gpuperf-arch={ARCH}", f"{SUITE.name}/test_{family}.py"]


def stations() -> Iterator[Any]:
    """Every family in the tour's order: ``family``, ``section``, ``sources`` and ``answer``."""
    section = ""
    for found in _STATION.finditer(README.read_text(encoding="utf-8")):
        section = found["section"] or section
        if found["family"]:
            yield SimpleNamespace(**found.groupdict() | {"section": section})


class Recorded:
    """The suite's baselines, read once."""

    def __init__(self, baselines: Path = BASELINES) -> None:
        self.store = BaselineStore(baselines)

    def time(self, pair: Pair, workload: str) -> TimeRecord | None:
        return self.store.time(GPU, pair.key(workload))

    def static(self, pair: Pair, workload: str, arch: str = ARCH) -> StaticRecord | None:
        """Of any compiler version, or of code for this architecture alone (``sm_90a``); None for a callable."""
        key = pair.key(workload)
        places = ((target, tool) for target in (arch, f"{arch}a") for tool in self.store.compilers(target, key, ""))
        return next(filter(None, (self.store.static(target, key, tool) for target, tool in places)), None)

    def time_ns(self, pair: Pair, workload: str) -> float | None:
        """Nanoseconds of a run; None without a record."""
        record = self.time(pair, workload)
        return mean_time_ns(record.rounds) if record and record.rounds else None

    def gain(self, pair: Pair) -> float | None:
        """How many times longer the naive workload takes for the same work; by the wall clock, if need be."""
        if pair.wall:
            return json.loads(CLAIMS.read_text(encoding="utf-8"))["figures"].get(pair.wall, [None])[0]
        naive, optimised = (self.time_ns(pair, name) for name in pair.names)
        return pair.work * naive / optimised if naive and optimised else None

    def counted(self, pair: Pair, workload: str) -> Any:
        """With ``counters``, of the run that took all of them or else of the baseline, and ``counter(metric)``."""
        test, time, taken = f"{pair.key(workload).module}::{pair.test}", self.time(pair, workload), _taken()
        values = taken["workloads"].get(test, {}).get(workload, ())
        counters = {name: value for name, value in zip(taken["metrics"], values, strict=False) if value is not None}
        counters = counters or (time.counters if time else {})
        return SimpleNamespace(counters=counters, counter=counters.__getitem__)


@functools.cache
def _taken() -> Any:
    """Counters by test, workload and metric."""
    return json.loads(COUNTERS.read_text(encoding="utf-8"))
