"""What outranks single figures of machine code: estimates of the whole, and causes that it proves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.advise.advisor import weigh
from pytest_gpuperf.advise.proven import proven_causes
from pytest_gpuperf.explain.compare import WorkloadComparison, side_of
from pytest_gpuperf.judge.static_weight import StaticEstimate
from pytest_gpuperf.model.verdict import Change


class StaticWeight(NamedTuple):
    """Of one workload on one architecture."""

    estimates: tuple[StaticEstimate, ...]
    """Under the launch at hand, if it is that of both versions, and under that of no launch in particular."""
    causes: tuple[Change, ...]


def static_weight(comparison: WorkloadComparison, arch: str) -> StaticWeight:
    """Baseline and candidate weighed by their machine code.  Raises ``BaselineError``."""
    old, new = comparison.static_pair(arch)
    launch = comparison.launch(arch)
    found: list[StaticEstimate] = []
    causes: tuple[Change, ...] = ()
    for one in dict.fromkeys((launch, None)):
        before, after = (
            side_of(arch, record, None, None, estimate)
            for record, estimate in zip((old, new), comparison.estimates.of_both(arch, old, new, one), strict=True)
        )
        estimate = weigh(before, after)
        if estimate is not None and estimate not in found:
            found.append(estimate)
        causes = causes or proven_causes(before, after)
    return StaticWeight(tuple(found), causes)


def prepare(comparison: WorkloadComparison, archs: Sequence[str]) -> None:
    """Make the estimates that these architectures need together."""
    comparison.estimates.prepare(
        (arch, record, launch)
        for arch in archs
        for record in comparison.static_pair(arch)
        for launch in dict.fromkeys((comparison.launch(arch), None))
    )
