"""The steps that recording, confirming and gating share: take rounds of a workload, pair it, put it on record.

Nothing here decides what is measured next: that is what ``record_time``, ``confirm_time`` and ``gate_time`` are for.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import secrets
from collections.abc import Sequence

import scipy

from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.device.device_errors import LoadError
from pytest_gpuperf.device.interface import Slot, Timer
from pytest_gpuperf.device.launch import Configuration
from pytest_gpuperf.device.recorded_arguments import RecordedArguments
from pytest_gpuperf.judge.log_times import mean_time_ns
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.evidence import Identity, KernelBinary, Key, TimeRecord
from pytest_gpuperf.model.task import OpponentTask
from pytest_gpuperf.model.timed_round import Round
from pytest_gpuperf.model.verdict import Judgement, PairSlot
from pytest_gpuperf.timing.blocks import MOST_PAD
from pytest_gpuperf.timing.long_blocks import LONG_NS
from pytest_gpuperf.timing.moving_buffers import MovingBuffers
from pytest_gpuperf.timing.paired_run import Pairing, pair
from pytest_gpuperf.timing.rounds import Rounds, Workload, take_rounds
from pytest_gpuperf.workload.baseline_kernel import Opponent, opponent_of
from pytest_gpuperf.workload.declared_rates import beyond_limits
from pytest_gpuperf.workload.guarded_check import guarded_timer
from pytest_gpuperf.workload.request import Request

FIRST_ROUNDS = 4
"""Candidate rounds before the first look; see docs/explanation/statistics.md,
"The screen: a non-inferiority test on rounds"."""
TAKES_AGAIN = 3
ROUNDS_SHARE = 1 / 4
"""Of a workload's budget goes to rounds where pairs are to follow."""
UNCHANGED_S = 0.08
"""As long may the rounds of unchanged code take, their warm-up apart: of a launch of 1 ms they have 17 samples each, of
one of 4 ms and more 5.  They only have to show whether the machine moved by more than its records scatter, which is
per cents; a round's centre of 5 launches of 1 to 17 ms is known to tenths of one."""


@dataclasses.dataclass(frozen=True)
class TimedWorkload:
    """What is timed, and on what.  The caller holds the GPU's lock."""

    worker: Worker
    request: Request
    key: Key
    identity: Identity
    """Of what runs, as the test asked for it."""

    @functools.cached_property
    def timer(self) -> Timer:
        """What measures it.  Another revision's process does not look at results: they are not those under test."""
        looked_at = not isinstance(self.worker.options.task, OpponentTask)
        return guarded_timer(self.worker.timer, self.request, looked_at=looked_at)

    @property
    def target(self) -> str:
        """``nvidia-h200``"""
        return self.worker.device.facts.slug

    @property
    def baseline(self) -> TimeRecord | None:
        """The workload's time on record."""
        return self.worker.store.time(self.target, self.key)

    @property
    def timed(self) -> Workload:
        """The work of a sample."""
        request = self.request
        return Workload(run=request.workload, reset=request.reset, cache=request.cache)


@dataclasses.dataclass(frozen=True)
class TimedRounds:
    """Rounds, with their judgement where one was asked for."""

    rounds: tuple[Round, ...]
    judgement: Judgement | None = None
    disturbances: tuple[str, ...] = ()


def take(
    work: TimedWorkload,
    count: int,
    budget_s: float,
    *,
    rounds_s: float = math.inf,
    process: int = 0,
    duration_ns: float = 0.0,
) -> Rounds:
    """Up to ``count`` rounds, in ``budget_s`` seconds with the warm-up and ``rounds_s`` without it.

    ``process`` is which of an update's processes this is, ``duration_ns`` about what a run takes, where that is known.
    Rates beyond the GPU's limits are noted.
    """
    worker = work.worker
    taken = take_rounds(
        worker.device, work.timer, work.timed, count, session=worker.session.id, process=process, budget_s=budget_s,
        rounds_s=rounds_s, duration_ns=duration_ns or recorded_ns(work) or probed_ns(work),
    )  # fmt: skip
    beyond = beyond_limits(worker.device.facts, work.request, taken.rounds)
    return dataclasses.replace(taken, notes=(*taken.notes, *beyond.said))


def probed_ns(work: TimedWorkload) -> float:
    """What one run takes, by a single one."""
    timed = work.timed
    return work.timer.measure([Slot(timed.run, 1, timed.reset, dropped=0)], timed.cache)[0][0]


def recorded_ns(work: TimedWorkload) -> float:
    """What one run took when its baseline was recorded; 0 without one."""
    rounds = work.baseline.rounds if work.baseline is not None else ()
    return max((one.midmean for one in rounds), default=0.0)


def take_again(work: TimedWorkload, first: Rounds, count: int) -> Rounds:
    """``count`` rounds in the place of the ``first``, on copies of the launch's arrays elsewhere where these can move.

    No workload that runs the baseline's code is called slower on the word of one place in memory.  Disturbed rounds,
    which would excuse it, are taken anew up to ``TAKES_AGAIN`` times.
    """
    request, device = work.request, work.worker.device
    device.release_unused()
    moving, _ = MovingBuffers.of(device, request.launch) if request.launch and request.reset is None else (None, "")
    if moving is not None:
        request = dataclasses.replace(request, workload=moving.moved(MOST_PAD // 2))
        work = dataclasses.replace(work, request=request)
    for _ in range(TAKES_AGAIN):
        again = take(work, count, request.budget_s, duration_ns=first.rounds[-1].midmean)
        if not again.disturbed:
            break
    was, now = (mean_time_ns(taken.rounds) for taken in (first, again))
    where = "on other addresses" if moving is not None else "on the same addresses"
    note = f"its rounds were taken twice, the second time {where}: x{now / was:.3f} of the first"
    return dataclasses.replace(again, notes=(*again.notes, note), seconds=first.seconds + again.seconds)


def opponent_for(work: TimedWorkload) -> Opponent:
    """The baseline's machine code, if it can be run again."""
    baseline = work.baseline
    if baseline is None:
        return Opponent(None, "there is no baseline")
    worker = work.worker
    return opponent_of(worker.store, worker.compile_cache, worker.trust, work.key, baseline, work.request.launch)


def pair_with(
    work: TimedWorkload,
    baseline: KernelBinary,
    policy: Policy,
    duration_ns: float,
    budget_s: float,
    pair_slot: PairSlot,
    configuration: Configuration | None = None,
    arguments: RecordedArguments | None = None,
) -> Pairing:
    """Paired blocks of ``baseline`` against the workload's launch, until ``policy`` decides.  Raises ``LoadError``.

    ``duration_ns`` is about what the launch takes.
    """
    request, launch, worker = work.request, work.request.launch, work.worker
    assert launch is not None
    return pair(
        worker.device, work.timer, launch, baseline, policy, seed=secrets.randbits(32), reset=request.reset,
        baseline_reset=request.guard.reset_baseline if request.guard else None,
        prepare_ns=request.guard.prepare_ns if request.guard else 0.0,
        cache=request.cache, pair_slot=pair_slot, duration_ns=duration_ns, baseline_ns=recorded_ns(work),
        budget_s=budget_s, configuration=configuration, arguments=arguments,
    )  # fmt: skip


def expected_ns(work: TimedWorkload) -> float:
    """About what the longer of baseline and workload takes: the record says, or one timed launch where it is short."""
    recorded = recorded_ns(work)
    return recorded if recorded >= LONG_NS else max(recorded, probed_ns(work))


def not_loaded(problem: LoadError) -> str:
    """Why there are no pairs: the baseline's cubin is at fault, for the candidate has run."""
    return f"the baseline's machine code cannot be loaded: {problem}"


def record_of(work: TimedWorkload, rounds: tuple[Round, ...]) -> TimeRecord:
    """The rounds with all that a baseline has to know of the workload."""
    request, launch = work.request, work.request.launch
    return TimeRecord(
        identity=work.identity, timer=work.worker.timer.name, cache=request.cache,
        rounds=tuple(one.recorded() for one in rounds),
        kernel=launch.kernel.name if launch else "", symbol=launch.binary.symbol if launch else "",
        cubin=launch.binary.cubin_hash if launch else "",
        grid=launch.grid if launch else None, block=launch.block if launch else None,
        dynamic_shared_bytes=launch.dynamic_shared_bytes if launch else 0,
        bytes=request.bytes, flops=request.flops,
    )  # fmt: skip


def interval_of(midmeans_ns: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of the mean log time, as nanoseconds; None with a single round."""
    if len(midmeans_ns) < 2:
        return None
    logs = [math.log(value) for value in midmeans_ns]
    mean = sum(logs) / len(logs)
    variance = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    half = float(scipy.special.stdtrit(len(logs) - 1, 0.975)) * math.sqrt(variance / len(logs))
    return math.exp(mean - half), math.exp(mean + half)
