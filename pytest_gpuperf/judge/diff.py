"""What differs between two states of the baselines, in figures: a description, no verdict.

The figures of machine code and counters, and their order, are those that the gate compares.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from pytest_gpuperf.formatting import duration
from pytest_gpuperf.judge.counters import Metric, compare_counters
from pytest_gpuperf.judge.static_rules import OCCUPANCY, REGISTERS, SPILL_LOADS, SPILL_STORES
from pytest_gpuperf.judge.static_verdict import compare_static
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.time_record import Beside, TimeRecord, WorkloadRecords, mean_time_ns
from pytest_gpuperf.model.verdict import Change

_FIRST = (REGISTERS.what, SPILL_STORES.what, SPILL_LOADS.what, OCCUPANCY.what)
"""Figures that a reader asks for first; the others follow in the order of the gate's rules."""
_NOTHING = WorkloadRecords({}, {})


class CodeDiff(NamedTuple):
    """How the machine code of a workload differs for one architecture."""

    arch: str
    toolchain: str
    """Of the later state."""
    changes: tuple[Change, ...]
    """Empty: the machine code differs, and no figure of it."""


@dataclasses.dataclass(frozen=True)
class RunDiff:
    """How time, counters and launch of a workload differ on one GPU model."""

    gpu: str
    times_ns: tuple[float, float] | None
    """Geometric means of the rounds' midmeans, before and after; None if the rounds are the same."""
    conditions: tuple[Change, ...] = ()
    """What was run, and how it was timed."""
    counters: tuple[Change, ...] = ()
    """Those that left their bands, the largest relative change first."""

    @property
    def ratio(self) -> float:
        """After over before; 1 if the rounds are the same."""
        return self.times_ns[1] / self.times_ns[0] if self.times_ns else 1.0


@dataclasses.dataclass(frozen=True)
class WorkloadDiff:
    """A workload that both states have, and that differs."""

    key: Key
    kernel: str
    """Empty for a callable."""
    was: Key | None
    """Its name in the earlier state, if that is another one."""
    code: tuple[CodeDiff, ...]
    runs: tuple[RunDiff, ...]

    @property
    def severity(self) -> tuple[float, int]:
        """Loss of time to a percent, and how many figures got worse."""
        changes = [change for one in self.code for change in one.changes]
        changes += [change for run in self.runs for change in run.counters]
        slowest = max((1.0, *(run.ratio for run in self.runs)))
        return round(slowest, 2), sum(change.direction == "worse" for change in changes)


@dataclasses.dataclass(frozen=True)
class EvidenceDiff:
    """What differs between two states of the baselines."""

    workloads: tuple[WorkloadDiff, ...]
    new: Mapping[Key, str]
    """Kernels of workloads that the later state alone has."""
    gone: Mapping[Key, str]


def compare_evidence(
    before: Mapping[Key, WorkloadRecords], after: Mapping[Key, WorkloadRecords], rules: Sequence[Metric], *,
    renamed: Mapping[Key, Key] = MappingProxyType({}),
) -> EvidenceDiff:  # fmt: skip
    """Compare the records of every workload by name.

    ``rules``: the counters that are known, of which those without a band only inform; others are compared exactly.
    ``renamed``: names of ``before`` by those of ``after``.
    """
    new = {key: after[key] for key in sorted(after) if key not in before}
    gone = {key: before[key] for key in sorted(before) if key not in after}
    lost = gone.keys() - set(renamed.values())
    came = new.keys() - renamed.keys()
    found: list[WorkloadDiff] = []
    for key in sorted({*before, *after} - came - gone.keys()):
        was = renamed.get(key, key)
        old, now = before.get(was, _NOTHING), after.get(key, _NOTHING)
        code = code_diffs(key, old, now)
        runs = run_diffs(key, old, now, rules, code_told=bool(code))
        if code or runs or was != key:
            found.append(WorkloadDiff(key, now.kernel or old.kernel, was if was != key else None, code, runs))
    return EvidenceDiff(
        workloads=tuple(found),
        new={key: records.kernel for key, records in new.items() if key in came},
        gone={key: records.kernel for key, records in gone.items() if key in lost},
    )


# --- machine code --------------------------------------------------------------------------------


def code_diffs(key: Key, old: WorkloadRecords, new: WorkloadRecords) -> tuple[CodeDiff, ...]:
    """One for each architecture and toolchain that differs; and one where an architecture went from one to another."""
    lost, gained = old.static.keys() - new.static.keys(), new.static.keys() - old.static.keys()
    pairs = [(at, at) for at in sorted(old.static.keys() & new.static.keys())]
    for arch in sorted({arch for arch, _ in lost}):
        was, now = ([at for at in side if at[0] == arch] for side in (lost, gained))
        pairs += [(was[0], now[0])] if len(was) == len(now) == 1 else []
    found = [_code_diff(key, was, now, old.static[was], new.static[now]) for was, now in pairs]
    return tuple(one for one in found if one is not None)


def _code_diff(
    key: Key, was: tuple[str, str], now: tuple[str, str], old: StaticRecord, new: StaticRecord
) -> CodeDiff | None:
    """None if the code, its launch and its figures are the same; an edited record may have others of the same code."""
    (arch, compiler), (_, other) = was, now
    unhashed = msgspec.structs.replace(old, profile=msgspec.structs.replace(old.profile, code_hash=""))
    changes = list(compare_static(key, arch, unhashed, new).changes)
    changes += _texts(("kernel", old.kernel, new.kernel), ("configuration", old.config, new.config))
    if old.grid is not None and new.grid is not None:
        changes += _texts(("grid", "x".join(map(str, old.grid)), "x".join(map(str, new.grid))))
    if not changes and old.profile.code_hash == new.profile.code_hash:
        return None
    changes.sort(key=lambda change: _FIRST.index(change.what) if change.what in _FIRST else len(_FIRST))
    return CodeDiff(arch, other, (*_texts(("compiler", compiler, other)), *changes))


def _texts(*figures: tuple[str, str, str]) -> list[Change]:
    """Of name, before and after: those that differ."""
    return [Change(what=what, before=before, after=after) for what, before, after in figures if before != after]


# --- runs ----------------------------------------------------------------------------------------


def run_diffs(
    key: Key, old: WorkloadRecords, new: WorkloadRecords, rules: Sequence[Metric], *, code_told: bool
) -> tuple[RunDiff, ...]:
    """One for each GPU model that differs.  ``code_told``: that the machine code differs is said elsewhere."""
    gpus = sorted(gpu for gpu in old.times.keys() & new.times.keys() if old.times[gpu] != new.times[gpu])
    found = (_run_diff(key, gpu, old.times[gpu], new.times[gpu], rules, code_told=code_told) for gpu in gpus)
    return tuple(one for one in found if one != RunDiff(one.gpu, None))


def _run_diff(
    key: Key, gpu: str, old: TimeRecord, new: TimeRecord, rules: Sequence[Metric], *, code_told: bool
) -> RunDiff:
    shared = old.counters.keys() & new.counters.keys()
    unknown = sorted(shared - {rule.name for rule in rules})  # a team added them, and nobody knows a band
    table = [*rules, *(Metric(name, name, better="neutral") for name in unknown)]
    moved = compare_counters(key, gpu, old.counters, new.counters, table).changes
    return RunDiff(
        gpu=gpu,
        times_ns=None if old.rounds == new.rounds else (mean_time_ns(old.rounds), mean_time_ns(new.rounds)),
        conditions=tuple(_texts(*_conditions(old, new, code_told=code_told))),
        counters=tuple(sorted(moved, key=_distance, reverse=True)),
    )  # fmt: skip


def _distance(change: Change) -> float:
    """Size of a change of a count, as a distance of logarithms; infinite from or to none."""
    before, after = float(change.before), float(change.after)
    return abs(math.log(after / before)) if before > 0 and after > 0 else math.inf


def _conditions(old: TimeRecord, new: TimeRecord, *, code_told: bool) -> Iterator[tuple[str, str, str]]:
    """Name, before and after of what was run, of how it was timed, and of its secondary metrics."""
    was, now = old.identity, new.identity
    if not code_told:
        yield "machine code", was.code[:8] or "none", now.code[:8] or "none"
    yield "timer", old.timer, new.timer
    yield "L2", old.cache, new.cache
    yield "launch", was.launch or "none", now.launch or "none"
    if len(was.arguments) == len(now.arguments):
        pairs = enumerate(zip(was.arguments, now.arguments, strict=True), start=1)
        yield from ((f"argument {at}", *pair) for at, pair in pairs)
    else:
        yield "arguments", ", ".join(was.arguments) or "none", ", ".join(now.arguments) or "none"
    if old.counters.keys() != new.counters.keys():
        yield "counters", _only(old.counters, new.counters), _only(new.counters, old.counters)
    yield from zip(_FIGURES, _figures(old), _figures(new), strict=True)


def _only(counters: Mapping[str, float], others: Mapping[str, float]) -> str:
    return ", ".join(sorted(counters.keys() - others.keys())) or "none"


_FIGURES = ("declared bytes", "declared operations", "device memory", "error", "host time")


def _figures(record: TimeRecord) -> Iterator[str]:
    """Each of ``_FIGURES``; of a host time also the ratio that the gate compares."""
    beside = record.beside or Beside()
    values = (record.bytes, record.flops, beside.memory_bytes, beside.accuracy)
    for value, form in zip(values, ("{}", "{}", "{} bytes", "{:.4g}"), strict=True):
        yield "none" if value is None else form.format(value)
    host = beside.host
    ratio = statistics.median(host.ratios) if host else 0.0
    yield f"{duration(host.time_ns)} (x{ratio:.4g} of fixed work)" if host else "none"
