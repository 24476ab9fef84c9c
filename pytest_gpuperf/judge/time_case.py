"""What a judge of times is handed, and what it hands back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_gpuperf.judge.votes import CONFIRMATION_ALPHA
from pytest_gpuperf.model.evidence import CacheMode, Identity, Key, Round, Session, TimeRecord, TimerName
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
    rounds: Sequence[Round] = ()
    """The candidate's, in the order they were taken."""
    disturbances: Sequence[str] = ()
    """What health checks found; such rounds prove nothing against a kernel."""
    remarks: Sequence[str] = ()
    """What a reader should know about rounds that are fit all the same."""


@dataclasses.dataclass(frozen=True)
class TimePolicy:
    """Tolerances (fractions) and error rates for one workload."""

    delta: float = 0.005
    """Slower by no more than this is accepted."""
    epsilon: float = 0.01
    """Slower by this must be detected."""
    alpha: float = 1e-3
    """Rate of false SLOWER of this workload: its share of the suite's (``suite``)."""
    alpha_faster: float = 1e-2
    """Rate of false FASTER of this workload: its share of the suite's."""
    beta: float = 0.005
    """Rate of NOT-SLOWER, or a pass by the screen, for a candidate that is slower by ``epsilon``."""
    omega: float | None = None
    """Spread between recordings on this GPU, from a machine profile; None: assumed."""

    def confirming(self) -> TimePolicy:
        """The policy of the second process: the first has paid for the suite, this one for itself."""
        return dataclasses.replace(self, alpha=CONFIRMATION_ALPHA)


@dataclasses.dataclass(frozen=True)
class TimeStep:
    """A judgement, and what would improve it."""

    judgement: Judgement
    """Final if ``rounds_wanted`` is 0, else what stands if nothing more is measured."""
    rounds_wanted: int = 0
    """Candidate rounds in all, the ones in hand included, at which to judge again."""
    pairing_helps: bool = False
    """The code changed and the screen did not acquit it: paired blocks would decide at the tolerance asked for."""
    confirmation_wanted: bool = False
    """Slower in paired blocks of one process: a second process has to see it too before the test fails."""
