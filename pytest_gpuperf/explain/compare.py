"""A workload beside its baseline, brought together for ``advise``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from pytest_gpuperf.advise.advisor import advise
from pytest_gpuperf.advise.side import Side
from pytest_gpuperf.baselines.lookup import recorded_under_another_name
from pytest_gpuperf.explain.estimates import Estimates
from pytest_gpuperf.judge.log_times import geometric_mean
from pytest_gpuperf.judge.static_verdict import with_launch_of
from pytest_gpuperf.model.verdict import TimeFigures

if TYPE_CHECKING:
    from pytest_gpuperf.baselines.store import BaselineStore
    from pytest_gpuperf.model.advice import Advice
    from pytest_gpuperf.model.device_facts import DeviceFacts
    from pytest_gpuperf.model.evidence import Key, StaticRecord, TimeRecord
    from pytest_gpuperf.model.result import WorkloadEvidence
    from pytest_gpuperf.model.verdict import EvidenceKind
    from pytest_gpuperf.model.warp_estimate import WarpEstimate


class Explained(NamedTuple):
    """A workload beside its baseline, on one architecture."""

    before: Side | None
    """None if nothing is known of a baseline."""
    after: Side
    advice: tuple[Advice, ...]

    @property
    def strongest(self) -> tuple[bool, float]:
        """Whether there is a cause that nothing else outweighs, and the gain of the one that is named first."""
        first = self.advice[0] if self.advice else None
        return first is not None and not first.outweighed, first.gain if first is not None else 0.0


def explained(
    store: BaselineStore,
    work: WorkloadEvidence,
    toolchain: str,
    workloads: Collection[WorkloadEvidence],
    facts: DeviceFacts | None,
    estimates: Estimates,
) -> Explained:
    """Causes of what changed, on the architecture where the first of them gains most.

    ``workloads`` are all of its test.
    """
    archs = archs_to_explain(work, facts)
    estimates.prepare(
        (arch, record) for arch in archs for record in static_pair(store, work, arch, toolchain, workloads)
    )
    return max((_explained(store, work, arch, toolchain, workloads, facts, estimates) for arch in archs),
               key=lambda one: one.strongest)  # fmt: skip


def _explained(
    store: BaselineStore,
    work: WorkloadEvidence,
    arch: str,
    toolchain: str,
    workloads: Collection[WorkloadEvidence],
    facts: DeviceFacts | None,
    estimates: Estimates,
) -> Explained:
    before, after = sides(store, work, arch, toolchain, workloads, facts, estimates)
    return Explained(before, after, advise(before, after) if before is not None else ())


def archs_to_explain(work: WorkloadEvidence, facts: DeviceFacts | None) -> list[str]:
    """The one explained before, else the GPU's own, else those whose verdict is red, else all; one at least."""
    named = [one.arch for one in work.advice if one.arch in work.static]
    if named:
        return named[:1]
    native = facts.arch if facts is not None else ""
    if native and (not work.static or native in _plain(work.static)):
        return [next((arch for arch in work.static if arch.rstrip("af") == native), native)]
    red = [judgement.target for judgement in work.judgements if judgement.verdict.is_regression]
    return [arch for arch in red if arch in work.static] or list(work.static) or [native]


def _red(work: WorkloadEvidence, kind: EvidenceKind) -> bool:
    return any(judgement.kind == kind and judgement.verdict.is_regression for judgement in work.judgements)


def _plain(archs: Iterable[str]) -> set[str]:
    return {arch.rstrip("af") for arch in archs}


def static_pair(
    store: BaselineStore, work: WorkloadEvidence, arch: str, toolchain: str, workloads: Collection[WorkloadEvidence]
) -> tuple[StaticRecord | None, StaticRecord | None]:
    """Machine code of baseline and candidate; the candidate has the baseline's launch where it has none of its own."""
    new = work.static.get(arch)
    old = store.static(arch, work.key, toolchain).record if toolchain else None
    if old is None and new is not None and not work.launched:
        old = recorded_under_another_name(store, arch, toolchain, work.key, new, workloads)
    if new is not None and old is not None and new.block is None:
        new = with_launch_of(new, old)
    return old, new


def sides(
    store: BaselineStore,
    work: WorkloadEvidence,
    arch: str,
    toolchain: str,
    workloads: Collection[WorkloadEvidence],
    facts: DeviceFacts | None,
    estimates: Estimates,
) -> tuple[Side | None, Side]:
    """Baseline and candidate; None for a baseline of which nothing is known."""
    old, new = static_pair(store, work, arch, toolchain, workloads)
    time = store.time(facts.slug, work.key) if facts is not None else None
    timed = (time.identity.code, time.identity.toolchain) if time is not None else None
    if old is not None and timed is not None and timed != (old.profile.code_hash, toolchain):
        # two baselines of different code: the one that was found wanting counts
        old, time = (old, None) if _red(work, "static") else (None, time)
    compared = next((judgement.time for judgement in work.judgements if judgement.time is not None), TimeFigures())
    estimate = estimates.of(arch, new) or (estimates.of(arch, old) if _same_code(old, new) else None)
    after = side_of(arch, new, work.time, facts, estimate, counters=work.counters, compared_ns=compared.after_ns)
    if old is None and time is None:
        return None, after
    return side_of(arch, old, time, facts, estimates.of(arch, old), compared_ns=compared.before_ns), after


def _same_code(one: StaticRecord | None, other: StaticRecord | None) -> bool:
    return one is not None and other is not None and one.profile.code_hash == other.profile.code_hash


def side_of(
    arch: str,
    static: StaticRecord | None,
    time: TimeRecord | None,
    facts: DeviceFacts | None,
    estimate: WarpEstimate | None,
    *,
    counters: dict[str, float] | None = None,
    compared_ns: float | None = None,
) -> Side:
    """One side; its time is ``compared_ns``, which the verdict compared, or else the mean of its rounds."""
    time_ns = geometric_mean(tuple(one.midmean for one in time.rounds)) if time is not None and time.rounds else None
    return Side(
        arch=arch, static=static, estimate=estimate, counters=counters or (time.counters if time is not None else {}),
        time_ns=compared_ns or time_ns, grid=time.grid if time is not None else None,
        block=time.block if time is not None else None, sm_count=facts.sm_count if facts is not None else None,
        bytes=time.bytes if time is not None else None, flops=time.flops if time is not None else None,
    )  # fmt: skip


def recorded_side(store: BaselineStore, key: Key, target: str, arch: str, toolchain: str, estimates: Estimates) -> Side:
    """What baselines alone know of a workload on a GPU model and for an architecture, either of them empty for none."""
    static = store.static(arch, key, toolchain).record if arch else None
    return side_of(arch, static, store.time(target, key) if target else None, None, estimates.of(arch, static))
