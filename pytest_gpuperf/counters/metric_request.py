"""Metrics to collect and to gate: sets, single names and tests' own tolerances."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Iterable, Mapping

from pytest_gpuperf.counters.catalogue import METRICS, SETS
from pytest_gpuperf.judge.counters import Better, Metric
from pytest_gpuperf.model.time_record import CacheMode

TRAFFIC = ("dram__", "lts__")
"""Beginnings of metrics that depend on what the caches held."""


def names_of(asked: Iterable[str]) -> tuple[str, ...]:
    """The metrics behind names of sets and of metrics, each once, in order."""
    words = ([metric.name for metric in SETS[word]] if word in SETS else [word] for word in asked)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(words)))


def rules_for(names: Iterable[str], own: Mapping[str, float | None], cache: CacheMode) -> list[Metric]:
    """Rules that compare the named metrics; ``own`` tolerances replace the catalogue's.

    Where it does not say which way is better, more is if the tolerance is negative: ``-0.05`` allows a fall by 5 %.
    Of a warm workload, traffic of the L2 and of DRAM informs only: it depends on how many passes ncu runs a kernel in.
    """
    rules = []
    for name in names:
        rule = METRICS.get(name) or Metric(name, name, better="neutral", tolerance=None)
        tolerance = own.get(name)
        if tolerance is not None:
            better: Better = "lower" if tolerance >= 0 else "higher"
            better = better if rule.better == "neutral" else rule.better
            rule = dataclasses.replace(rule, better=better, tolerance=abs(tolerance), floor=0.0)
        elif cache == "warm" and name.startswith(TRAFFIC):
            rule = dataclasses.replace(rule, tolerance=None)
        rules.append(rule)
    return rules


def hint(name: str) -> str:
    """``; did you mean ...?`` where the catalogue has something like it, else empty."""
    close = difflib.get_close_matches(name, list(METRICS), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""
