"""Lines that a cause lies in: those whose instructions cost more in the new machine code than in the baseline."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_gpuperf.advise.comparison import WARP, change
from pytest_gpuperf.advise.usage_from_code import least_sectors, least_wavefronts
from pytest_gpuperf.advise.waiting_rules import WAITS_FOR
from pytest_gpuperf.compile.machine_code.line_table import SourceLine
from pytest_gpuperf.model.verdict import Advice, Change
from pytest_gpuperf.model.warp_estimate import Site

Figure = Callable[[Site], float | None]
Sites = Mapping[int, Site]


class SiteFigures(NamedTuple):
    """How a cause shows in single instructions."""

    cost: Figure
    """What it costs there."""
    figure: Figure = lambda _: None
    """Of one instruction, to be shown."""
    unit: str = ""
    absent: float | None = None
    """The figure of a baseline that has no such instruction; of a count the only one that compares."""
    is_worse: Callable[[float, float], bool] = operator.gt
    """Whether the first of two figures is the worse one."""


PER_WARP = "per warp"


def _of_class(*classes: str) -> SiteFigures:
    def cost(site: Site) -> float:
        return site.times if site.klass in classes else 0.0

    return SiteFigures(cost, lambda site: site.times, PER_WARP, 0.0)


def _sectors_in_excess(site: Site) -> float:
    return site.requests * max((site.sectors or 0.0) - least_sectors(site), 0.0)


def _wavefronts_in_excess(site: Site) -> float:
    is_shared = site.klass.startswith("shared")
    return site.requests * max((site.wavefronts or 0.0) - least_wavefronts(site), 0.0) if is_shared else 0.0


def _turns(site: Site) -> float:
    is_global = site.klass == "atomic" and site.opcode[0] != "ATOMS"
    return site.requests * (site.wavefronts or 1.0) if is_global else 0.0


def _requested_bytes(site: Site) -> float:
    return site.requests * site.bytes * site.lanes if site.klass.startswith("global") else 0.0


def _side_lanes(site: Site) -> float:
    """Mean lanes on the sides of a branch, as if a whole warp reached it."""
    return WARP * (1 - site.lost / site.inside) if site.inside else WARP


_LOCAL = _of_class("local_load", "local_store")
_KINDS = {
    "register spilling": _LOCAL, "stack from run-time indexing": _LOCAL, "address of a local variable": _LOCAL,
    "uncoalesced access": SiteFigures(_sectors_in_excess, lambda site: site.sectors, "sectors per request"),
    "bank conflicts": SiteFigures(_wavefronts_in_excess, lambda site: site.wavefronts, "wavefronts per request"),
    "contended atomics": SiteFigures(_turns, lambda site: site.wavefronts, "lanes per address", 0.0),
    "redundant global traffic": SiteFigures(_requested_bytes),
    "lost vectorisation": SiteFigures(
        lambda site: site.requests * (site.klass != "atomic"), lambda site: site.bytes or None, "bytes per lane",
        is_worse=operator.lt,
    ),
    "double-precision literals": _of_class("fp64"), "lost tensor cores": _of_class("fp32"),
    "slow-path division": SiteFigures(lambda site: site.divisions),
    "divergence": SiteFigures(lambda site: site.lost, _side_lanes, f"of {WARP} lanes", WARP, operator.lt),
    "instruction growth": SiteFigures(lambda site: site.times), "barrier stalls": _of_class("barrier"),
}  # fmt: skip
"""Causes that lie in single instructions; launch, occupancy and caches do not."""


def _kind_of(cause: Advice) -> SiteFigures | None:
    awaited = cause.evidence[0].what.partition(WAITS_FOR)[2].replace(" ", "_") if cause.evidence else ""
    return SiteFigures(lambda site: site.waits.get(awaited, 0.0)) if awaited else _KINDS.get(cause.cause)


def has_place(cause: Advice) -> bool:
    """Whether it lies in single instructions, and not in a launch."""
    return _kind_of(cause) is not None


def located(cause: Advice, was: Sites, now: Sites, scale: float, lines: Mapping[int, SourceLine]) -> Advice:
    """The cause with its costliest line; as it is where it lies in no single instructions.

    Instructions of one opcode and access pattern cost what they cost more than in the baseline, together, or, where
    none costs more, what they cost.  ``scale`` makes the work of ``now`` that of ``was``.  ``lines`` are by address; a
    function without any is where it is called.
    """
    kind = _kind_of(cause)
    if kind is None:
        return cause
    before, after = (_by_pattern(kind.cost, sites.values()) for sites in (was, now))
    more = {pattern: max(1 - before[pattern] / (scale * cost), 0.0) for pattern, cost in after.items() if cost}
    found: dict[SourceLine, list[tuple[float, Site]]] = {}
    for address, site in now.items():
        cost = (kind.cost(site) or 0.0) * (more.get(_pattern(site), 0.0) if any(more.values()) else 1.0)
        at: int | None = address
        while at is not None and at not in lines:
            at = now[at].caller
        if cost and at is not None:
            found.setdefault(lines[at], []).append((cost, site))
    if not found:
        return cause
    line, sites = max(found.items(), key=lambda one: sum(cost for cost, _ in one[1]))
    costliest_first = [site for _, site in sorted(sites, key=lambda one: -one[0])]
    return msgspec.structs.replace(cause, file=line.file, line=line.line, at_line=_change(kind, costliest_first, was))


def _pattern(site: Site) -> tuple[object, ...]:
    return site.opcode, site.bytes, site.lanes, site.sectors, site.wavefronts


def _by_pattern(cost: Figure, sites: Iterable[Site]) -> defaultdict[tuple[object, ...], float]:
    found: defaultdict[tuple[object, ...], float] = defaultdict(float)
    for site in sites:
        found[_pattern(site)] += cost(site) or 0.0
    return found


def _change(kind: SiteFigures, sites: Sequence[Site], was: Sites) -> Change | None:
    """The figure of the first of these instructions, and the mean of those of its class in the baseline, if better."""
    site = sites[0]
    alike = [one for one in was.values() if one.klass == site.klass and (kind.cost(one) or one.requests)]
    known = [(one.requests or one.inside, figure) for one in alike if (figure := kind.figure(one)) is not None]
    weight, after = sum(weight for weight, _ in known), kind.figure(site)
    before = sum(weight * figure for weight, figure in known) / weight if weight else None if known else kind.absent
    if before is None or after is None or not kind.is_worse(after, before):
        return None
    if kind.unit == PER_WARP:
        after = sum(one.times for one in sites if one.klass == site.klass)
    return change(site.klass.replace("_", " ").removeprefix("global "), before, after, kind.unit)
