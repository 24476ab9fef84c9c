"""A loss that waits for a second process, and what that process found of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_gpuperf.judge.decision import Comparison
from pytest_gpuperf.model.evidence import Key, Record
from pytest_gpuperf.model.task import SuspectPlace
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import EvidenceKind, Judgement


class Confirmation(Record, frozen=True):
    """What a confirming process found of one workload."""

    key: Key
    kind: EvidenceKind
    identity: Identity
    comparison: Comparison | None = None
    time_ns: float = 0.0
    """Of rounds, where there is no comparison."""
    problem: str = ""
    """Why there is neither."""

    @property
    def place(self) -> SuspectPlace:
        return SuspectPlace(key=self.key, kind=self.kind)


@dataclasses.dataclass(frozen=True)
class Suspect:
    """What one process found slower or worse: a kernel, a callable or a host time."""

    judgement: Judgement
    identity: Identity
    settle: Callable[[Sequence[Confirmation]], Judgement | None]
    """The final judgement, from what the other processes so far found; None: another one has to speak."""
    budget_s: float

    @property
    def place(self) -> SuspectPlace:
        return SuspectPlace(key=self.judgement.key, kind=self.judgement.kind)
