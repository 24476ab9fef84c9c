"""A workload as it is timed: its rounds, the record of them, and its A/A test."""

from __future__ import annotations

import dataclasses
import math
import random
import secrets
import statistics
import warnings
from collections.abc import Sequence
from functools import cached_property

import scipy

from pytest_gpuperf.device.interface import WorkloadTimer
from pytest_gpuperf.judge.decision import Decision
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.time_record import Identity, TimeRecord
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.compare import compare
from pytest_gpuperf.timing.cubin_reference import BaselineLaunch, CubinReference
from pytest_gpuperf.timing.elapsed import ElapsedTimer
from pytest_gpuperf.timing.rounds import LONG_NS, Rounds, sample_rounds
from pytest_gpuperf.workload.request import Request

ROUNDS = 4
"""Rounds of a workload that is recorded, or that cannot be paired."""
BRIEF_ROUNDS, BRIEF_S = 2, 0.05
"""Rounds that no verdict rests on, and the time for them: they show by how many per cent the machine moved."""
RETAKES = 3
"""How often disturbed rounds are measured again before they are handed over as disturbed."""


@dataclasses.dataclass(frozen=True)
class TimedWorkload:
    """A workload to be timed, with its run.  The caller holds the GPU's lock."""

    run: Run
    request: Request
    key: Key
    identity: Identity
    """Identity of the requested work."""

    @property
    def target(self) -> str:
        """``nvidia-h200``"""
        return self.run.device.facts.slug

    @cached_property
    def timer(self) -> WorkloadTimer:
        """The run's, or one of elapsed time where the test asks for that."""
        return ElapsedTimer(self.run.timer) if "elapsed" in self.request.measure else self.run.timer

    @property
    def baseline(self) -> TimeRecord | None:
        return self.run.store.time(self.target, self.key)

    @cached_property
    def least_tolerance(self) -> float:
        """The fraction that ``min_delta_us`` is of the least time that it may be slower than; 0 without it.

        Slower by no more than ``d`` is a time ``t`` of at most ``t / (t - d)`` of the baseline's.
        """
        delta_ns = self.request.min_delta_us * 1e3
        now_ns = self.measure_briefly().time_ns if delta_ns else 1.0
        return delta_ns / max(now_ns - delta_ns, now_ns / 100)

    @property
    def confirms(self) -> bool:
        """Whether this is the second process."""
        return self.run.confirming is not None

    def probed_ns(self) -> float:
        """Time of a single run; with a reference, the longer one."""
        slots = [one.sample.slot(1, dropped=0) for one in (self.request, self.request.against) if one is not None]
        return max(times[0] for times in self.timer.measure(slots, self.request.cache))

    def expected_ns(self) -> float:
        """About the longer time of baseline and workload."""
        return max(self.run.recorded_ns, self.probed_ns())

    def measure_rounds(self, count: int = ROUNDS, budget_s: float | None = None) -> Rounds:
        """``count`` rounds in ``budget_s`` seconds, by default those of the request."""
        return sample_rounds(
            self.run.device, self.timer, self.request.sample, count,
            budget_s=self.request.budget_s if budget_s is None else budget_s,
            duration_ns=self.run.recorded_ns or self.probed_ns(),
        )  # fmt: skip

    def measure_for_record(self) -> Rounds:
        """Rounds to be recorded, measured again where they were disturbed."""
        for _ in range(1 + RETAKES):
            measured = self.measure_rounds()
            if not measured.disturbed:
                break
        return measured

    def measure_briefly(self) -> Rounds:
        """Rounds for assertions on times and for the record's ratio; no verdict rests on them."""
        return self.measure_rounds(BRIEF_ROUNDS, min(BRIEF_S, self.request.budget_s))

    def record(self, rounds: tuple[float, ...], kernels: dict[str, float]) -> TimeRecord:
        """The rounds, and a callable's ``kernels`` with their times, as a baseline has them."""
        request, launch = self.request, self.request.launch
        return TimeRecord(
            identity=self.identity, timer=self.timer.name, cache=request.cache, rounds=rounds,
            kernel=launch.kernel.name if launch else "", symbol=launch.binary.symbol if launch else "",
            cubin=launch.binary.cubin_hash if launch else "",
            grid=launch.grid if launch else None, block=launch.block if launch else None,
            dynamic_shared_bytes=launch.dynamic_shared_bytes if launch else 0,
            bytes=request.bytes, flops=request.flops, kernel_breakdown=kernels,
        )  # fmt: skip


def interval_of(midmeans_ns: Sequence[float]) -> tuple[float, float] | None:
    """95 % t interval of the mean log time, as nanoseconds; None with a single round."""
    if len(midmeans_ns) < 2:
        return None
    logs = [math.log(value) for value in midmeans_ns]
    mean = statistics.fmean(logs)
    half = float(scipy.special.stdtrit(len(logs) - 1, 0.975)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean - half), math.exp(mean + half)


# --- A/A tests -----------------------------------------------------------------------------------------

AA_TESTS, AA_BUDGET_S, AA_ALPHA = 3, 0.2, 1e-3
"""A/A tests of a run, in the mean; seconds for each; its rate of false warnings."""


def draw_aa_test(work: TimedWorkload) -> None:
    """Compare the workload with itself, if it is a short launch and drawn; warn if it is slower.

    A difference is the machine's doing.
    """
    run, request = work.run, work.request
    launch = request.launch
    if launch is None or random.random() * run.gated_tests >= AA_TESTS:
        return
    expected_ns = work.expected_ns()
    if expected_ns >= LONG_NS:
        return
    itself, device = BaselineLaunch(launch.binary), run.device
    limits = request.limits.at_least(work.least_tolerance)
    reference = CubinReference(device, run.timer, launch, itself, reset=request.reset, cache=request.cache)
    found = compare(
        device, reference, limits, AA_ALPHA, seed=secrets.randbits(32), duration_ns=expected_ns,
        budget_s=AA_BUDGET_S,
    ).comparison  # fmt: skip
    if found.decision(limits, AA_ALPHA) is Decision.SLOWER:
        with warnings.catch_warnings():
            warnings.simplefilter("always")  # -W error would fail a test by it
            warnings.warn(
                f"A/A test: {work.key} is slower than itself, x{found.ratio:.3f} after {len(found.r)} blocks (seed "
                f"{found.seed}): end other work on the GPU or lock its clocks (gpuperf doctor), and run again",
                stacklevel=2,
            )
