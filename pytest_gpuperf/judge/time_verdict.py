"""From comparisons to a verdict on a workload's time, with reason and figures.  Pure.

A slower candidate has to be slower in two processes: where its code was placed cannot be randomised away inside one.
Recorded times inform: they are shown as a ratio, and only a callable that cannot be paired is compared with
them, by a wide margin.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge import decision
from pytest_gpuperf.judge.decision import Comparison, Decision
from pytest_gpuperf.model.evidence import Key, Record
from pytest_gpuperf.model.limits import Limits
from pytest_gpuperf.model.task import SuspectPlace
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import Judgement, TimeFigures, Verdict

REMARKED = 0.05
"""A time that differs by more than this from the recorded one gets a remark."""
RECORD_TOLERANCE, RECORD_DEVIATIONS = 0.1, 5
"""A callable that cannot be paired is slower than recorded beyond 10 %, or five standard deviations of its rounds."""


@dataclasses.dataclass(frozen=True)
class TimeCase:
    """A workload, and what is known of it before its comparison."""

    key: Key
    target: str
    """``nvidia-h200``"""
    limits: Limits
    alpha: float
    """Error rate of a false SLOWER: the workload's share of the run's."""
    min_delta_us: float = 0.0
    """The slowdown in microseconds that the limits accept; 0 where they are fractions."""
    cause: str = ""
    """What made it differ from the baseline, as a clause."""
    record_ns: float = 0.0
    """Its recorded time; 0 without one."""
    by_process: bool = False
    """Whether the two run in a process each."""
    reference: str = ""
    """The workload of the same test in place of a baseline; a verdict on it is SAME, SLOWER or INCONCLUSIVE."""
    gates: bool = True
    """False of a comparison that is shown, and nothing is asked of."""

    def judgement(
        self, verdict: Verdict, reason: str, time: TimeFigures | None = None, now_ns: float = 0.0,
        notes: Sequence[str] = (),
    ) -> Judgement:  # fmt: skip
        """``now_ns`` is what the candidate takes; a note says by how much that differs from the record."""
        ratio = now_ns / self.record_ns if self.record_ns and now_ns else 1.0
        of_record = [f"x{ratio:.2f} of its recorded time"] if abs(math.log(ratio)) > REMARKED else []
        return Judgement(
            key=self.key, target=self.target, kind="time", verdict=verdict, time=time,
            reason="; ".join(filter(None, (reason, self.cause))), notes=(*notes, *of_record),
            reference=self.reference,
        )  # fmt: skip

    def slower(self, fraction: float) -> str:
        """``0.5 % slower``; than a reference, ``x0.914 of the time of cub``."""
        if self.reference:
            return f"x{1 + fraction:.4g} of the time of {self.reference}"
        return f"{amount(fraction)} slower"


def new(case: TimeCase, now_ns: float) -> Judgement:
    reason = f"no time baseline for {case.target}"
    return case.judgement(Verdict.NEW, reason, now_ns=now_ns)


def unchanged(case: TimeCase, reason: str, now_ns: float = 0.0) -> Judgement:
    """Of equal code, launched alike: it cannot have regressed, whatever its time."""
    return case.judgement(Verdict.UNCHANGED, reason, _of_record(case, now_ns, "identity"), now_ns)


def not_comparable(case: TimeCase, reason: str, now_ns: float) -> Judgement:
    """Of a baseline that cannot run again; both times are shown."""
    return case.judgement(Verdict.NOT_COMPARABLE, reason, _of_record(case, now_ns, "record"))


def by_blocks(case: TimeCase, first: Comparison, second: Comparison | None = None) -> Judgement:
    """The verdict on the blocks of one process; SLOWER is final with those of a ``second``."""
    decided, limits = first.decision(case.limits, case.alpha), case.limits
    if not case.gates:
        verdict, reason = Verdict.SAME, f"at_least= or at_most= gates it against {case.reference}"
    elif decided is Decision.SLOWER:
        verdict, reason = _confirmed(case, first, second)
        reason += _of_means(case, first)
    elif decided is None:
        reason = f"undecided after {numbered(len(first.r), 'block')}: raise --gpuperf-budget"
        verdict, reason = Verdict.INCONCLUSIVE, f"{reason}, or make the launch longer"
    elif (
        decided is Decision.FASTER
        and not case.reference
        and (not case.by_process or decision.proven_faster(first.ratio, limits))
    ):
        verdict, reason = Verdict.FASTER, f"proven to be more than {amount(limits.tolerance)} faster"
    else:
        verdict, reason = Verdict.SAME, f"proven to be less than {case.slower(limits.detect)}"
    return case.judgement(verdict, reason, figures(case, first, second), first.time_ns, first.remarks)


def by_processes(case: TimeCase, pairs: Sequence[Comparison]) -> Judgement | None:
    """The verdict on a callable by its pairs of processes, the gating one first; None: another pair is wanted."""
    first, ratios = pairs[0], [one.ratio for one in pairs]
    decided = decision.over_processes(ratios, case.limits, case.alpha)
    found = f"by {len(ratios)} pairs of processes: {', '.join(f'x{one:.3f}' for one in ratios)}"
    if decided is Decision.SLOWER:
        verdict, reason = Verdict.SLOWER, f"proven to be more than {amount(case.limits.tolerance)} slower, {found}"
        reason += _of_means(case, first)
    elif decided is Decision.SAME:
        reason = f"slower in this process, but not reproduced in fresh ones, {found}"
        verdict = Verdict.SAME
    elif decision.wants_pair(ratios, case.limits):
        return None
    else:
        verdict, reason = Verdict.INCONCLUSIVE, f"undecided {found}; measure again on a quieter machine"
    return case.judgement(verdict, reason, figures(case, first, pairs[-1]), first.time_ns)


def record_bound(recorded: Sequence[float]) -> float:
    """Ratio to the recorded time beyond which a callable that cannot be paired is slower."""
    logs = list(map(math.log, recorded))
    deviation = statistics.stdev(logs) if len(logs) > 1 else 0.0
    return 1 + max(RECORD_TOLERANCE, math.expm1(RECORD_DEVIATIONS * deviation))


def by_record(case: TimeCase, times_ns: Sequence[float], bound: float, unpaired: str) -> Judgement:
    """The verdict on a callable that cannot be paired, by its times in one process or in two.

    ``unpaired`` says why it cannot be paired, and what to do.
    """
    ratios = [one / case.record_ns for one in times_ns]
    time = TimeFigures(
        before_ns=case.record_ns, after_ns=times_ns[0], ratio=ratios[0], tolerance=bound - 1, method="record"
    )
    if min(ratios) > bound:
        processes = "two processes" if len(ratios) > 1 else "one process"
        reason = f"slower than recorded by more than {amount(bound - 1)}, in {processes}; not paired: {unpaired}"
        return case.judgement(Verdict.SLOWER, reason, time)
    reason = f"x{ratios[-1]:.3f} of its recorded time: nothing is proven below x{bound:.2f}; not paired: {unpaired}"
    return case.judgement(Verdict.INCONCLUSIVE, reason, time)


def figures(case: TimeCase, first: Comparison, second: Comparison | None) -> TimeFigures:
    return TimeFigures(
        before_ns=first.time_ns / first.ratio, after_ns=first.time_ns, ratio=first.ratio, blocks=len(first.r),
        interval=decision.interval(first.r), tolerance=case.limits.tolerance, min_delta_us=case.min_delta_us,
        confirm_blocks=len(second.r) if second else 0, log_e=decision.log_e_slower(first.r, case.limits, first.means),
        log_e_needed=-math.log(case.alpha), seeds=(first.seed, *([second.seed] if second else [])),
    )  # fmt: skip


def amount(fraction: float) -> str:
    """A tolerance as ``0.5 %``."""
    return f"{fraction * 100:.3g} %"


def _confirmed(case: TimeCase, first: Comparison, second: Comparison | None) -> tuple[Verdict, str]:
    limits, slower = case.limits, f"proven to be more than {case.slower(case.limits.tolerance)}"
    if second is None:
        return Verdict.SLOWER, f"{slower} in one process"
    decided = second.decision(limits, decision.CONFIRMING_ALPHA)
    if decided is Decision.SLOWER:
        return Verdict.SLOWER, f"{slower}, in two processes"
    if decided is None and second.trends_slower(limits):
        return Verdict.SLOWER, f"not confirmed: a second process was undecided after {len(second.r)} blocks; {slower}"
    ratios = f"x{first.ratio:.3f} and x{second.ratio:.3f}"
    return Verdict.INCONCLUSIVE, f"{slower} in one process, not reproduced in a second: {ratios}"


def _of_means(case: TimeCase, first: Comparison) -> str:
    """What the means say, where midmeans alone would not prove it."""
    if decision.log_e_slower(first.r, case.limits) >= -math.log(case.alpha):
        return ""
    return f": rare slow samples, the mean is x{np.mean(np.exp(first.means)):.3g} and the midmean x{first.ratio:.4g}"


def _of_record(case: TimeCase, now_ns: float, method: str) -> TimeFigures | None:
    if not now_ns or not case.record_ns:
        return None
    return TimeFigures(
        before_ns=case.record_ns, after_ns=now_ns, ratio=now_ns / case.record_ns, tolerance=case.limits.tolerance,
        method=method,  # type: ignore[arg-type]
    )  # fmt: skip


# --- losses that wait for a second process -------------------------------------------------------


class Confirmation(Record, frozen=True, tag="confirmation"):
    """What a confirming process found of one workload, as it sends it."""

    place: SuspectPlace
    identity: Identity
    comparison: Comparison | None = None
    time_ns: float = 0.0
    """Of rounds where there is no comparison; of the host, as recorded."""
    problem: str = ""
    """Why there is neither."""


@dataclasses.dataclass(frozen=True)
class Suspect:
    """What one process found slower or worse: a kernel, a callable or a host time."""

    judgement: Judgement
    identity: Identity
    final_verdict: Callable[[Sequence[Confirmation]], Judgement | None]
    """The final judgement, from what the other processes so far found; None: another one has to speak."""
    budget_s: float

    @property
    def place(self) -> SuspectPlace:
        return SuspectPlace(key=self.judgement.key, kind=self.judgement.kind)
