"""A workload and its baseline, prepared for ``advise``: records, launches, and estimates of both.

Estimates are made when they are asked for, out of this run's machine code or the baselines'.  A launch out of the
workload's identity saves the warp model a guess of sizes and integers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_gpuperf.advise.advisor import advise, static_case
from pytest_gpuperf.advise.at_fault import has_place, located
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.lookup import baseline_of_any_compiler, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import CompileCache
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.compile.listing import NO_LISTINGS, Listings, lines_of
from pytest_gpuperf.compile.warp_model.estimate import EstimatePair, KernelCode, Versions, estimates_of
from pytest_gpuperf.compile.warp_model.launch_inputs import KnownLaunch
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import Identity, TimeRecord, mean_time_ns
from pytest_gpuperf.model.verdict import Advice, TimeFigures
from pytest_gpuperf.model.warp_estimate import WarpEstimate
from pytest_gpuperf.report.message import hints_of

_LAUNCH = re.compile(r"grid=\((\d+), (\d+), (\d+)\) block=\((\d+), (\d+), (\d+)\)")
_NUMBER = re.compile(r"([a-z]+)(\d*)=(.+)")
_POINTER_BYTES = 8


class VersionPair(NamedTuple):
    """Two versions of a kernel: baseline and candidate, each None where there is none."""

    arch: str
    old: StaticRecord | None
    new: StaticRecord | None
    launches: tuple[KnownLaunch | None, KnownLaunch | None] = (None, None)


class Estimates:
    """Estimates of versions that are compared; a kernel whose machine code is not at hand has none."""

    def __init__(
        self, store: BaselineStore, cubins: Mapping[str, bytes], cache: CompileCache | None, *, updates: bool = False,
        root: Path = Path(), listings: Listings = NO_LISTINGS,
    ) -> None:  # fmt: skip
        """``cubins``, by SHA-256, are of this run.  One that ``updates`` does without baselines that it replaces.

        ``listings`` has the sources of cubins; files are named as seen from ``root``.
        """
        self.store, self._updates = store, updates
        self._root, self._listings = root, listings
        self._cubins = cubins
        self._cache = cache
        self._recorded = functools.cache(store.cubin)
        self._found: dict[Versions, EstimatePair] = {}

    def prepare(self, several: Iterable[VersionPair]) -> None:
        """Make the estimates of several kernels together, which takes hardly longer than those of one."""
        new = [codes for codes in map(self._codes, several) if codes not in self._found]
        try:
            self._found.update(estimates_of(new, self._cache))
        except ToolchainMissing:  # without a disassembler an explanation does without estimates
            self._found.update(dict.fromkeys(new, (None, None)))

    def of(self, compared: VersionPair) -> EstimatePair:
        """Estimates that compare: of both as they were launched if that is known of both, else of neither."""
        self.prepare([compared])
        return self._found[self._codes(compared)]

    def cubin(self, record: StaticRecord | None) -> bytes:
        """Of this run or the baselines; empty without a record or a name of one.  Raises ``CubinError``."""
        name = record.cubin if record is not None else ""
        with contextlib.suppress(*([CubinError] if self._updates else [])):
            return self._cubins.get(name) or (self._recorded(name) if name else b"")
        return b""

    def located(self, advice: Sequence[Advice], compared: VersionPair, before: Side, after: Side) -> list[Advice]:
        """Causes with file and line of the instructions that they lie in, where the compiler tells them."""
        codes, record = self._codes(compared), compared.new
        if codes[1] is None or record is None or not any(map(has_place, advice)):
            return list(advice)
        listing = self._listings.get((record.cubin, codes[1].symbol))
        lines = lines_of(codes[1], record.profile, listing, self._root, self._cache)
        case = static_case(before, after)
        was, now = (side.estimate.sites if side.estimate is not None else {} for side in (before, after))
        scale = case.scale if case is not None else 1.0
        return [located(one, was, now, scale, lines) for one in advice]

    def _codes(self, compared: VersionPair) -> Versions:
        old, new = (
            KernelCode(cubin, record.symbol or record.kernel, compared.arch, launch)
            if record is not None and (cubin := self.cubin(record))
            else None
            for record, launch in zip((compared.old, compared.new), compared.launches, strict=True)
        )
        return old, new


Explained = tuple[Side | None, Side, tuple[Advice, ...]]
"""A workload on one architecture: its baseline, if anything is known of one, itself, and causes of what changed."""


@dataclasses.dataclass(frozen=True)
class WorkloadComparison:
    """A workload, and all that it is compared with."""

    estimates: Estimates
    work: WorkloadEvidence
    workloads: Collection[WorkloadEvidence]
    """All of its test."""
    facts: DeviceFacts | None

    @property
    def arch(self) -> str:
        """To explain it on: where it was explained before, else the GPU's own, a red one, or the first it has."""
        work, native = self.work, self.facts.arch if self.facts is not None else ""
        named = [one.arch for one in work.advice]
        own = [arch for arch in work.static if plain(arch) == native]
        red = [judgement.target for judgement in work.judgements if judgement.may_be_intended]
        return next((arch for arch in (*named, *own, *red, *work.static) if arch in work.static), native)

    def compared(self, arch: str) -> VersionPair:
        """Machine code of baseline and candidate, and how it is launched; of neither where that is not known of both.

        A candidate without a launch of its own takes the baseline's.  The same arguments are taken for both: with
        others it is other work.
        """
        work, new = self.work, self.work.static.get(arch)
        store = self.estimates.store
        old = baseline_of_any_compiler(store, arch, work, self.workloads)[0] if work.toolchain else None
        if new is not None and old is not None:
            new = under_recorded_launch(new, old, arch)
            # a cubin with other neighbours is not kept
            if old.cubin and new.profile.code_hash == old.profile.code_hash:
                new = msgspec.structs.replace(new, cubin=old.cubin, symbol=old.symbol or old.kernel)
        own, before = known_launch(work.identity), None
        if own is None or (new is not None and new.block != own.block):
            return VersionPair(arch, old, new)
        if old is None or new is None or new.profile.code_hash == old.profile.code_hash or old.grid is None:
            before = own if old is None or old.block == own.block else None
        elif old.block is not None:
            before = own._replace(grid=old.grid, block=old.block)
        return VersionPair(arch, old, new, (before, own) if before is not None else (None, None))

    def sides(self, arch: str) -> tuple[Side, Side]:
        """Baseline and candidate by their machine code alone."""
        compared = self.compared(arch)
        was, now = self.estimates.of(compared)
        return Side(arch=arch, static=compared.old, estimate=was), Side(arch=arch, static=compared.new, estimate=now)

    def explained(self, *, locates_all: bool) -> Explained:
        """Baseline and candidate on one architecture, and the causes of what changed.

        Their lines cost a compilation: without ``locates_all`` only causes have them that a run shows.
        """
        work, facts, arch, pair = self.work, self.facts, self.arch, self.compared(self.arch)
        old, red = pair.old, [judgement for judgement in work.judgements if judgement.verdict.is_regression]
        time = self.estimates.store.time(facts.slug, work.key) if facts is not None else None
        timed = (time.identity.code, time.identity.toolchain) if time is not None else None
        if old is not None and timed is not None and timed != (old.profile.code_hash, work.toolchain):
            # two baselines of different code: the one that was found wanting counts
            old, time = (old, None) if any(judgement.kind == "static" for judgement in red) else (None, time)
        compared = next((judgement.time for judgement in work.judgements if judgement.time is not None), TimeFigures())
        estimated, estimate = self.estimates.of(pair._replace(old=old))
        after = side_of(arch, pair.new, work.time, facts, estimate, work.counters, compared.after_ns)
        if old is None and time is None:
            return None, after, ()
        counted = work.baseline_counters if time is not None else {}
        before = side_of(arch, old, time, facts, estimated, counted, compared.before_ns)
        figures = {change.what for judgement in red if judgement.target == arch for change in judgement.changes
                   if change.direction == "worse"}  # fmt: skip
        python = work.toolchain.lower().startswith(("triton", "numba", "cutlass-dsl", "cutile"))
        advice = tuple(msgspec.structs.replace(one, in_python=python) for one in advise(before, after, figures))
        if locates_all or red or hints_of(msgspec.structs.replace(work, advice=advice)):
            advice = tuple(self.estimates.located(advice, pair._replace(old=old), before, after))
        return before, after, advice


def explain_each(
    estimates: Estimates, comparisons: Sequence[WorkloadComparison], *, locates_all: bool = False
) -> Iterator[Explained]:
    """Causes of what changed in each, on one architecture."""
    estimates.prepare(one.compared(one.arch) for one in comparisons)
    yield from (one.explained(locates_all=locates_all) for one in comparisons)


def side_of(
    arch: str, static: StaticRecord | None, time: TimeRecord | None, facts: DeviceFacts | None,
    estimate: WarpEstimate | None, counters: dict[str, float] | None = None, compared_ns: float | None = None,
) -> Side:  # fmt: skip
    """One side; its time is ``compared_ns``, which the verdict compared, or else the mean of its rounds.

    Its grid is that of the timed launch, or, where nothing was timed, of the one without a GPU.
    """
    side = Side(arch=arch, static=static, estimate=estimate, counters=counters or {}, time_ns=compared_ns,
                grid=static.grid if static is not None else None,
                sm_count=facts.sm_count if facts is not None else None,
                l2_bytes=facts.l2_bytes if facts is not None else 0)  # fmt: skip
    if time is None:
        return side
    return msgspec.structs.replace(
        side, counters=counters or time.counters, grid=time.grid, record=time,
        time_ns=compared_ns or (mean_time_ns(time.rounds) if time.rounds else None),
    )  # fmt: skip


# --- launches ------------------------------------------------------------------------------------


def known_launch(identity: Identity | None) -> KnownLaunch | None:
    """Sizes and integers of the launch; None for a callable, and where nothing was launched."""
    found = _LAUNCH.match(identity.launch) if identity is not None else None
    if identity is None or found is None:
        return None
    x, y, z, width, height, depth = map(int, found.groups())
    integers, sizes = zip(*map(_parameter, identity.arguments), strict=True) if identity.arguments else ((), ())
    return KnownLaunch((x, y, z), (width, height, depth), integers, sizes)


def _parameter(entry: str) -> tuple[int | None, int]:
    """Of ``int32=-7``, ``bool=True`` or ``float32[1024]``: the integer, and bytes of the parameter; 0 if unknown."""
    found = _NUMBER.match(entry)
    if found is None:
        return (0 if entry == "null" else None), _POINTER_BYTES
    kind, bits, value = found.groups()
    if value.startswith("0x"):
        return None, (len(value) - 2) // 2
    if kind == "bool":
        return int(value == "True"), 1
    is_integer = kind in ("int", "uint") and value.removeprefix("-").isdecimal()
    return (int(value) if is_integer else None), int(bits or 0) // 8
