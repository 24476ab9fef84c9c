"""Figures of a kernel's instructions one by one, out of a walk, for a cause to find the one at fault."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_gpuperf.compile.warp_model.accesses import Visit
from pytest_gpuperf.model.warp_estimate import Site


def sites_of(visits: Iterable[Visit]) -> dict[int, Site]:
    """The instructions of a way, by address."""
    found: dict[int, Site] = {}
    for visit in visits:
        step, pattern = visit.step, visit.pattern
        site = found.get(step.address) or Site((step.operation, *sorted(step.modifiers)), step.klass, visit.caller)
        found[step.address] = site
        site.times += visit.times
        site.waits[visit.waited_for] = site.waits.get(visit.waited_for, 0.0) + visit.times * visit.waited
        site.divisions += visit.times * visit.divides
        for branch, share in visit.lost:
            found[branch].lost += visit.times * share
            found[branch].inside += visit.times
        more = visit.times * visit.data_share
        if pattern is not None and pattern.lanes and more:
            part = more / (site.requests + more)
            site.bytes, site.lanes = pattern.bytes, site.lanes + (pattern.lanes - site.lanes) * part
            site.sectors, site.wavefronts = (
                new if not site.requests or new is None or mean is None else mean + (new - mean) * part
                for mean, new in ((site.sectors, pattern.sectors), (site.wavefronts, pattern.wavefronts))
            )
            site.requests += more
    return found
