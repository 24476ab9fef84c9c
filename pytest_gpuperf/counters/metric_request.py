"""Metrics to collect and to gate: sets, single names and tests' own tolerances put together."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping

from pytest_gpuperf.config.flags import is_metric
from pytest_gpuperf.counters.catalogue import METRICS, PASSES, SETS
from pytest_gpuperf.counters.derived import DERIVED, PREFIX
from pytest_gpuperf.judge.counters import Better, Metric, depends_on_caches

Own = Mapping[str, float | None]
"""Metrics that a user added: name to tolerance; None: collected, and compared as the catalogue says."""


class BadMetric(ValueError):
    """A metric's name or tolerance is not valid; the message says which and what would be."""


def own_metrics(given: Iterable[str] | Mapping[str, object]) -> dict[str, float | None]:
    """``metrics=`` of a test, read.  Raises ``BadMetric``."""
    if isinstance(given, str):
        raise BadMetric(f"metrics={given!r} is one string; it takes a list of names or a dict of name to tolerance")
    if not isinstance(given, Iterable):
        raise BadMetric(f"metrics={given!r} is not valid: it takes names of metrics, or a dict of name to tolerance")
    items = given.items() if isinstance(given, Mapping) else ((name, None) for name in given)
    read: dict[str, float | None] = {}
    for name, tolerance in items:
        if not isinstance(name, str) or not is_metric(name):
            raise BadMetric(f"metrics: {name!r} is no name of a metric such as 'smsp__inst_executed.sum'")
        if name.startswith(PREFIX) and name not in DERIVED:
            raise BadMetric(f"metrics: there is no {name!r}{hint(name, DERIVED)}")
        number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool) and -1 <= tolerance <= 100
        if tolerance is not None and not number:
            raise BadMetric(f"metrics: the tolerance {tolerance!r} of {name} is not valid: it takes a fraction or None")
        read[name] = float(tolerance) if isinstance(tolerance, int | float) else None
    return read


def names_of(asked: Iterable[str]) -> tuple[str, ...]:
    """The metrics behind set names, metric names and derived names, each once, in order.

    With traffic of the caches comes the number of passes, without which a warm workload's is compared with nothing.
    Raises ``KeyError``.
    """
    found: list[str] = []
    for word in asked:
        if word in SETS:
            found += [metric.name for metric in SETS[word]]
        else:
            found += DERIVED[word].inputs if word.startswith(PREFIX) else [word]
    if any(map(depends_on_caches, found)):
        found.append(PASSES.name)
    return tuple(dict.fromkeys(found))


def rules_for(names: Iterable[str], own: Own) -> list[Metric]:
    """Rules that compare the named metrics and derived figures; ``own`` tolerances replace the catalogue's.

    Where it does not say which way is better, more is if the tolerance is negative: ``-0.05`` allows a fall by 5 %.
    """
    return [_rule(name, own.get(name)) for name in names]


def _rule(name: str, tolerance: float | None) -> Metric:
    metric = METRICS.get(name) or DERIVED.get(name) or Metric(name, name, better="neutral", tolerance=None)
    if tolerance is None:
        return metric
    better: Better = "lower" if tolerance >= 0 else "higher"
    better = better if metric.better == "neutral" else metric.better
    return dataclasses.replace(metric, better=better, tolerance=abs(tolerance), floor=0.0)


def hint(name: str, known: Iterable[str] = METRICS) -> str:
    """``; did you mean ...?`` where something like it is known, else empty."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""
