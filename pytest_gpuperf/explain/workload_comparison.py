"""A workload beside its baseline, brought together for ``advise``."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pytest_gpuperf.advise.advisor import advise
from pytest_gpuperf.advise.comparison import Side
from pytest_gpuperf.baselines.lookup import static_baseline, under_recorded_launch
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.explain.estimates import Estimates, VersionPair, known_launch
from pytest_gpuperf.model.advice import Advice
from pytest_gpuperf.model.architectures import plain
from pytest_gpuperf.model.device_facts import DeviceFacts
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns
from pytest_gpuperf.model.verdict import TimeFigures
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


@dataclasses.dataclass(frozen=True)
class WorkloadComparison:
    """A workload, and all that it is compared with."""

    store: BaselineStore
    estimates: Estimates
    work: WorkloadEvidence
    toolchain: str
    """Compiler whose baselines are compared with; empty for none."""
    workloads: Collection[WorkloadEvidence]
    """All of its test."""
    facts: DeviceFacts | None

    def archs(self) -> list[str]:
        """The one explained before, else the GPU's own, else those whose verdict is red, else all; one at least."""
        work, native = self.work, self.facts.arch if self.facts is not None else ""
        named = [one.arch for one in work.advice if one.arch in work.static]
        if named:
            return named[:1]
        own = [arch for arch in work.static if plain(arch) == native]
        if native and (own or not work.static):
            return [*own, native][:1]
        red = [judgement.target for judgement in work.judgements if judgement.verdict.is_regression]
        return [arch for arch in red if arch in work.static] or list(work.static) or [native]

    def static_pair(self, arch: str) -> tuple[StaticRecord | None, StaticRecord | None]:
        """Machine code of baseline and candidate, which takes the baseline's launch where it has none of its own."""
        work, toolchain = self.work, self.toolchain
        new = work.static.get(arch)
        old = static_baseline(self.store, arch, toolchain, work, self.workloads) if toolchain else None
        if new is not None and old is not None:
            new = under_recorded_launch(new, old, arch)
        return old, new

    def compared(self, arch: str) -> VersionPair:
        """Machine code of both and how it is launched; of neither where that is not known of both.

        The same arguments are taken for both: with others it is other work.
        """
        old, new = self.static_pair(arch)
        own = known_launch(self.work.identity)
        if own is None or (new is not None and new.block != own.block):
            return VersionPair(arch, old, new)
        if old is None or new is None or new.profile.code_hash == old.profile.code_hash or old.grid is None:
            alike = old is None or old.block == own.block
            return VersionPair(arch, old, new, (own, own) if alike else (None, None))
        if old.block is None:
            return VersionPair(arch, old, new)
        return VersionPair(arch, old, new, (own._replace(grid=old.grid, block=old.block), own))

    def sides(self, arch: str) -> tuple[Side, Side]:
        """Baseline and candidate by their machine code alone."""
        compared = self.compared(arch)
        was, now = self.estimates.of(compared)
        return Side(arch=arch, static=compared.old, estimate=was), Side(arch=arch, static=compared.new, estimate=now)

    def _red_figures(self, arch: str) -> set[str]:
        """Figures of the machine code that failed the gate."""
        red = (one for one in self.work.judgements if one.verdict.is_regression and one.target == arch)
        return {change.what for judgement in red for change in judgement.changes if change.direction == "worse"}

    def explained(self, arch: str) -> Explained:
        """Baseline and candidate on one architecture, and the causes of what changed."""
        work, facts, estimates = self.work, self.facts, self.estimates
        old, new = self.static_pair(arch)
        time = self.store.time(facts.slug, work.key) if facts is not None else None
        timed = (time.identity.code, time.identity.toolchain) if time is not None else None
        if old is not None and timed is not None and timed != (old.profile.code_hash, self.toolchain):
            # two baselines of different code: the one that was found wanting counts
            red = any(judgement.kind == "static" and judgement.verdict.is_regression for judgement in work.judgements)
            old, time = (old, None) if red else (None, time)
        compared = next((judgement.time for judgement in work.judgements if judgement.time is not None), TimeFigures())
        estimated, estimate = estimates.of(self.compared(arch)._replace(old=old))
        after = side_of(arch, new, work.time, facts, estimate, counters=work.counters, compared_ns=compared.after_ns)
        if old is None and time is None:
            return Explained(None, after, ())
        before = side_of(arch, old, time, facts, estimated, compared_ns=compared.before_ns)
        return Explained(before, after, advise(before, after, self._red_figures(arch)))


def explain_each(estimates: Estimates, comparisons: Sequence[WorkloadComparison]) -> Iterator[Explained]:
    """Causes of what changed in each, on the architecture where the first of them gains most."""
    estimates.prepare(one.compared(arch) for one in comparisons for arch in one.archs())
    for one in comparisons:
        yield max(map(one.explained, one.archs()), key=lambda found: found.strongest)


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
    """One side; its time is ``compared_ns``, which the verdict compared, or else the mean of its rounds.

    Its grid is that of the timed launch, or, where nothing was timed, of the one without a GPU.
    """
    time_ns = mean_time_ns(time.rounds) if time is not None and time.rounds else None
    launched = time if time is not None else static
    return Side(
        arch=arch, static=static, estimate=estimate, counters=counters or (time.counters if time is not None else {}),
        time_ns=compared_ns or time_ns, grid=launched.grid if launched is not None else None,
        block=time.block if time is not None else None, sm_count=facts.sm_count if facts is not None else None,
        bytes=time.bytes if time is not None else None, flops=time.flops if time is not None else None,
    )  # fmt: skip


def recorded_side(store: BaselineStore, key: Key, target: str, arch: str, toolchain: str, estimates: Estimates) -> Side:
    """What baselines alone know of a workload on a GPU model and for an architecture, either of them empty for none."""
    static = store.static(arch, key, toolchain) if arch else None
    _, estimate = estimates.of(VersionPair(arch, None, static))
    return side_of(arch, static, store.time(target, key) if target else None, None, estimate)
