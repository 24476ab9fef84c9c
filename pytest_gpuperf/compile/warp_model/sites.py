"""Figures of a kernel's instructions one by one, out of a walk, for a cause to find the one at fault."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from pytest_gpuperf.compile.warp_model.accesses import Visit
from pytest_gpuperf.compile.warp_model.arithmetic import WARP


@dataclasses.dataclass(slots=True)
class Site:
    """One instruction; figures are per warp."""

    opcode: tuple[str, ...]
    """With its modifiers, in alphabetical order behind it."""
    klass: str
    """``global_load``, as ``StaticProfile.opcodes`` has them."""
    caller: int | None = None
    """Address of the call of the function that it is in; None in the kernel itself."""
    times: float = 0.0
    """How often it is executed."""
    requests: float = 0.0
    """The same, less the part of the lanes that data send elsewhere."""
    bytes: int = 0
    """Per lane, of a memory access."""
    lanes: float = 0.0
    sectors: float | None = None
    """Of 32 bytes, per request to global memory; None: data decide, or it is none."""
    wavefronts: float | None = None
    """Per request to shared memory; None: data decide, or it is none."""
    waits: dict[str, float] = dataclasses.field(default_factory=dict)
    """Cycles that it waits, by the class of the instruction that it waits for."""
    divisions: float = 0.0
    """Divisions and roots with a slow path that begin here."""
    lost: float = 0.0
    """Of a branch: instructions of its sides, each by the fraction of the warp that waits for its other side."""
    inside: float = 0.0
    """Of a branch: instructions of its sides."""

    @property
    def side_lanes(self) -> float:
        """Mean lanes on the sides of a branch, as if a whole warp reached it."""
        return WARP * (1 - self.lost / self.inside) if self.inside else WARP


Sites = dict[int, Site]


def sites_of(visits: Iterable[Visit]) -> Sites:
    """The instructions of a way, by address."""
    found: Sites = {}
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
