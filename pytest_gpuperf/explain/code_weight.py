"""What outranks single figures of machine code: estimates of the whole, and causes that it proves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pytest_gpuperf.advise.advisor import weigh
from pytest_gpuperf.advise.proven import proven_causes
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.explain.compare import WorkloadComparison
from pytest_gpuperf.explain.known_launch import known_launch
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
    found: list[StaticEstimate] = []
    causes: tuple[Change, ...] = ()
    for launches in dict.fromkeys((_launches(comparison, arch), (None, None))):
        estimated, estimate = (
            comparison.estimates.of(arch, record, launch) for record, launch in zip((old, new), launches, strict=True)
        )
        if None not in launches and not all(one is not None and one.launched for one in (estimated, estimate)):
            continue  # other parameters, or too long to walk: examples have to do
        before = Side(arch=arch, static=old, estimate=estimated)
        after = Side(arch=arch, static=new, estimate=estimate)
        weight = weigh(before, after)
        if weight is not None:
            scale = _threads(launches[1]) / _threads(launches[0])
            scaled = StaticEstimate(weight.ratio * scale, weight.latency * scale)
            found += [scaled] if scaled not in found else []
        causes = causes or proven_causes(before, after)
    return StaticWeight(tuple(found), causes)


def _launches(comparison: WorkloadComparison, arch: str) -> tuple[KnownLaunch | None, KnownLaunch | None]:
    """How baseline and candidate are launched; neither where that is not known of both.

    The same arguments are taken for both: with others it is other work.
    """
    shared = comparison.launch(arch)
    old, new = comparison.static_pair(arch)
    own = known_launch(comparison.work.identity)
    if own is None or new is None or new.block != own.block or old is None or old.grid is None or old.block is None:
        return shared, shared
    return own._replace(grid=old.grid, block=old.block), own


def _threads(launch: KnownLaunch | None) -> int:
    """Of the whole launch; 1 where it is not known, so that a warp stands for equal work."""
    return 1 if launch is None else math.prod(launch.grid) * math.prod(launch.block)


def prepare(comparison: WorkloadComparison, archs: Sequence[str]) -> None:
    """Make the estimates that these architectures need together."""
    comparison.estimates.prepare(
        (arch, record, launch)
        for arch in archs
        for launches in dict.fromkeys((_launches(comparison, arch), (None, None)))
        for record, launch in zip(comparison.static_pair(arch), launches, strict=True)
    )
