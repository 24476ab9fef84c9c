"""What a judge of times is handed, and what it hands back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from pytest_gpuperf.model.evidence import CacheMode, Identity, Key, Session, TimeRecord
from pytest_gpuperf.model.timed_round import RecordedRound
from pytest_gpuperf.model.timer_names import TimerName
from pytest_gpuperf.model.verdict import Judgement


@dataclasses.dataclass(frozen=True)
class TimeCase:
    """One workload's evidence on time: the baseline's and the candidate's."""

    key: Key
    target: str
    """``nvidia-h200``"""
    baseline: TimeRecord | None
    sessions: Mapping[str, Session]
    """By id: those that the baseline's rounds name."""
    identity: Identity
    timer: TimerName
    cache: CacheMode
    session: Session
    """The machine as it is now."""
    rounds: Sequence[RecordedRound] = ()
    """The candidate's, in the order they were taken."""
    disturbances: Sequence[str] = ()
    """What health checks found; such rounds prove nothing against a kernel."""
    disturbed_by: float = math.inf
    """By how much, as a log, that can have moved the rounds; infinite where it is not known."""
    remarks: Sequence[str] = ()
    """What a reader should know about rounds that are fit all the same."""
    of_revision: bool = False
    """The baseline is what another revision runs: its rounds say about how long that takes, and decide nothing."""
    unchanged_shifts: Sequence[float] = ()
    """Log of time over record of the other unchanged workloads of this process so far, all recorded on this GPU."""


@dataclasses.dataclass(frozen=True)
class TimeStep:
    """A judgement, and what would improve it."""

    judgement: Judgement
    """Final if ``rounds_wanted`` is 0, else what stands if nothing more is measured."""
    rounds_wanted: int = 0
    """Candidate rounds in all, the ones in hand included, at which to judge again."""
    pairing_helps: bool = False
    """The code changed and no test has passed it: paired blocks would decide at the tolerance asked for."""
    confirmation_wanted: bool = False
    """Slower in paired blocks of one process: a second process has to see it too before the test fails."""
