"""``@pytest.mark.gpuperf(...)``: one test's own settings, validated when it is collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_gpuperf.arguments import setting_problem

if TYPE_CHECKING:
    from pytest_gpuperf.model.limits import Profile
    from pytest_gpuperf.model.time_record import CacheMode

NAME = "gpuperf"
DESCRIPTION = (
    "gpuperf(tolerance=, min_delta_us=, cache=, budget_s=, sustained=, metrics=, measure=): settings of the GPU "
    "performance gate for this test"
)


class MarkerSettings(NamedTuple):
    """Keywords of the marker; None: the run's own option applies."""

    tolerance: float | Profile | None = None
    """Slower by no more than this fraction is accepted, or by that of a profile."""
    min_delta_us: float | None = None
    """Slower by no more than so many microseconds is accepted, too."""
    cache: CacheMode | None = None
    """State of the L2 before each sample: flushed, or as the run before left it."""
    budget_s: float | None = None
    """For timing one workload; up to 3 s more where paired blocks agree and are too few yet."""
    sustained: bool = False
    """For power-limited kernels: baseline and candidate each run for two seconds at a time; minutes for a verdict."""
    metrics: Any = None
    """Metrics to collect: names, or a dict of name to tolerance."""
    measure: Any = None
    """Secondary metrics to gate: names, or a dict of name to tolerance."""


def settings_of(item: pytest.Item) -> MarkerSettings:
    """Merge the test's markers, the closest winning.  Raises ``pytest.UsageError`` that names the test."""
    known = MarkerSettings._fields
    merged: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers(NAME))):
        unknown = [name for name in marker.kwargs if name not in known]
        problems = [f"unknown keyword {name!r} (known: {', '.join(known)})" for name in unknown]
        problems += [
            p for name, value in marker.kwargs.items() if name in known and (p := setting_problem(name, value))
        ]
        if marker.args:
            problems.append("takes keywords only")
        if problems:
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.gpuperf: {'; '.join(problems)}")
        merged.update(marker.kwargs)
    return MarkerSettings(**merged)
