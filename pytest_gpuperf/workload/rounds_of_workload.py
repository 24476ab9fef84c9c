"""Rounds of one workload: taken, held against the baseline by themselves, or recorded for an update.

What more a gate does with them is in ``gating``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pytest_gpuperf.judge.canary_shift import canary_shifts, has_comparable_canaries
from pytest_gpuperf.judge.error_budget import ALPHA, ALPHA_FASTER
from pytest_gpuperf.judge.time_verdict import TimeCase, TimePolicy, TimeStep, judge_time
from pytest_gpuperf.model.evidence import Key, Round, TimeRecord
from pytest_gpuperf.model.task import RecordTask
from pytest_gpuperf.model.verdict import Judgement
from pytest_gpuperf.timing.machine_profile import omega_of
from pytest_gpuperf.timing.rounds import NO_ROUNDS, Rounds, Workload, take_rounds

if TYPE_CHECKING:
    from pytest_gpuperf.context.worker import Worker
    from pytest_gpuperf.workload.request import Request

RETAKES = 3
"""How often a recording process takes disturbed rounds again before it hands them over as disturbed."""


@dataclasses.dataclass(frozen=True)
class Taken:
    """Rounds with their judgement."""

    rounds: tuple[Round, ...]
    judgement: Judgement | None = None
    disturbances: tuple[str, ...] = ()


class Timing:
    """Times one workload; the caller of what takes times holds the GPU's lock."""

    def __init__(self, worker: Worker, request: Request, key: Key) -> None:
        self._worker = worker
        self._request = request
        self._key = key
        self._identity = request.identity()
        slug = worker.device.facts.slug
        self._baseline = worker.store.time(slug, key) if not isinstance(worker.options.task, RecordTask) else None
        self._sessions = {session.id: session for session in worker.store.sessions(slug, key.module)}
        self._session = worker.session
        self._alpha = ALPHA
        """Rate of a false SLOWER."""
        self._omega = omega_of(worker.device.facts.uuid, worker.timer.name)

    def record(self, task: RecordTask) -> Taken:
        """Take this process's share of an update's rounds, again if they were disturbed."""
        taken = self._take(task.rounds, self._request.budget_s)
        for _ in range(RETAKES):
            if not taken.disturbed:
                break
            taken = self._take(task.rounds, self._request.budget_s)
        launch = self._request.launch
        if launch is not None:
            self._worker.cubins[self._cubin()] = launch.binary.cubin
        return Taken(taken.rounds, disturbances=taken.disturbed)

    @property
    def _alpha_faster(self) -> float:
        """Rate of a false FASTER, shared out as that of a false SLOWER is."""
        return self._alpha * ALPHA_FASTER / ALPHA

    def judge(self, taken: Rounds = NO_ROUNDS) -> TimeStep:
        """Judge the rounds in hand."""
        return judge_time(self._case(taken), self._policy())

    def _policy(self) -> TimePolicy:
        zone = self._request.zone
        return TimePolicy(
            delta=zone.delta, epsilon=zone.epsilon, alpha=self._alpha, alpha_faster=self._alpha_faster,
            omega=self._omega,
        )  # fmt: skip

    def _case(self, taken: Rounds) -> TimeCase:
        worker = self._worker
        return TimeCase(
            key=self._key, target=worker.device.facts.slug, baseline=self._baseline, sessions=self._sessions,
            identity=self._identity, timer=worker.timer.name, cache=self._request.cache, session=self._session,
            rounds=taken.rounds, disturbances=taken.disturbed, remarks=taken.notes,
        )  # fmt: skip

    def compare_canaries(self) -> None:
        """Time the canaries of this process where the workload's record has some to compare them with.

        Before any round, so that what they find is the GPU's doing and not the workload's.
        """
        named = {one.session for one in self._baseline.rounds} if self._baseline is not None else set()
        known = [self._sessions[name] for name in named & self._sessions.keys()]
        if any(has_comparable_canaries(one, self._session) for one in known):
            self._session = msgspec.structs.replace(self._session, canaries=self._worker.canaries)
            self._worker.note_canaries(canary_shifts(known, self._session))

    def record_of(self, rounds: tuple[Round, ...]) -> TimeRecord:
        """The rounds with all that a baseline has to know of the workload."""
        launch, request = self._request.launch, self._request
        return TimeRecord(
            identity=self._identity, timer=self._worker.timer.name, cache=request.cache, rounds=rounds,
            kernel=launch.kernel.name if launch else "", symbol=launch.binary.symbol if launch else "",
            cubin=self._cubin(), grid=launch.grid if launch else None, block=launch.block if launch else None,
            dynamic_shared_bytes=launch.dynamic_shared_bytes if launch else 0,
            bytes=request.bytes, flops=request.flops,
        )  # fmt: skip

    def _cubin(self) -> str:
        launch = self._request.launch
        return hashlib.sha256(launch.binary.cubin).hexdigest() if launch else ""

    def _take(self, count: int, budget_s: float) -> Rounds:
        request = self._request
        workload = Workload(run=request.workload, reset=request.reset, cache=request.cache)
        return take_rounds(
            self._worker.device, self._worker.timer, workload, count, session=self._worker.session.id,
            process=self._worker.process, budget_s=budget_s,
        )  # fmt: skip


def interval_of(midmeans_ns: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of the mean log time, as nanoseconds; None with a single round."""
    if len(midmeans_ns) < 2:
        return None
    from scipy import special

    logs = [math.log(value) for value in midmeans_ns]
    mean = sum(logs) / len(logs)
    variance = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    half = float(special.stdtrit(len(logs) - 1, 0.975)) * math.sqrt(variance / len(logs))
    return math.exp(mean - half), math.exp(mean + half)
