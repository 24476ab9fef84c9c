"""What outranks single figures of machine code: estimates of the whole, and causes that it proves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.advise.advisor import weigh
from pytest_gpuperf.advise.proven import proven_causes
from pytest_gpuperf.explain.compare import WorkloadComparison
from pytest_gpuperf.judge.static_weight import StaticEstimate
from pytest_gpuperf.model.verdict import Change


class StaticWeight(NamedTuple):
    """Of one workload on one architecture."""

    estimates: tuple[StaticEstimate, ...]
    """Under the launches at hand, if they are known of both versions, and under that of no launch in particular."""
    causes: tuple[Change, ...]
    """Changes for the worse that the machine code proves."""
    cured: tuple[Change, ...]
    """Those of the way back: what it proves to be better."""


def static_weight(comparison: WorkloadComparison, arch: str) -> StaticWeight:
    """Baseline and candidate weighed by their machine code.  Raises ``BaselineError``."""
    found: list[StaticEstimate] = []
    causes: tuple[Change, ...] = ()
    cured: tuple[Change, ...] = ()
    for before, after in comparison.estimated_sides(arch):
        weight = weigh(before, after)
        if weight is not None and weight not in found:
            found.append(weight)
        causes = causes or proven_causes(before, after)
        cured = cured or proven_causes(after, before)
    return StaticWeight(tuple(found), causes, cured)


def prepare(comparison: WorkloadComparison, archs: Sequence[str]) -> None:
    """Make the estimates that these architectures need together."""
    comparison.estimates.prepare(each for arch in archs for each in comparison.wanted_estimates(arch))
