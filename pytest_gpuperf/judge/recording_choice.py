"""Which of a baseline's rounds today's can be compared with (this GPU's first), and what changed about the machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from pytest_gpuperf.judge import env_shift
from pytest_gpuperf.judge.canary_shift import CANARY_SHIFT, canary_shifts
from pytest_gpuperf.model.evidence import Session, TimeRecord
from pytest_gpuperf.model.timed_round import RecordedRound
from pytest_gpuperf.model.workload_records import rounds_on

UNKNOWN_CAUSES = "clocks, temperature or what else runs on this GPU"


@dataclasses.dataclass(frozen=True)
class Recording:
    """The part of a baseline that is compared with."""

    rounds: tuple[RecordedRound, ...]
    same_gpu: bool
    """Recorded on this very GPU, by UUID."""
    changes: tuple[str, ...]
    """What differs about the machine, such as ``driver 580.1 -> 590.2``; the GPU is not among them."""
    canary_shifts: Mapping[str, float] | None = None
    """Log of each canary's time now over that on record; None if there are none to compare."""

    @property
    def canaries(self) -> tuple[str, ...]:
        """Canary kernels that take another time than then: ``fma +3.0 %``."""
        shifts = (self.canary_shifts or {}).items()
        return tuple(f"{name} {env_shift.percent(moved)}" for name, moved in shifts if abs(moved) > CANARY_SHIFT)

    @property
    def canary_slowdown(self) -> float:
        """Log by which the slowest canary became slower; 0 if none did, or none can be compared."""
        return max((0.0, *(self.canary_shifts or {}).values()))

    @property
    def machine_changed(self) -> bool:
        """The stored times are no measure for this machine at the accuracy of the non-inferiority test."""
        return not self.same_gpu or bool(self.changes or self.canaries)

    @property
    def rounds_are_few(self) -> bool:
        """A single round tells nothing about how rounds scatter."""
        return len(self.rounds) < 2

    @property
    def possible_causes(self) -> str:
        """Where a shift that is not the code's may come from."""
        if not self.same_gpu:
            return ", ".join(["another GPU of the same model", *self.changes])
        named = ", ".join(self.changes) or UNKNOWN_CAUSES
        return f"{named} (canary kernels moved, too: {', '.join(self.canaries)})" if self.canaries else named

    @property
    def notes(self) -> tuple[str, ...]:
        """For the report."""
        found = [] if self.same_gpu else ["the baseline was recorded on another GPU of this model"]
        if self.changes:
            found.append(f"since the baseline was recorded: {', '.join(self.changes)}")
        if self.canaries:
            moved = ", ".join(self.canaries)
            found.append(f"the plugin's own kernels take another time than when the baseline was recorded: {moved}")
        if len({(one.session, one.process) for one in self.rounds}) < 2:
            found.append("the baseline comes from one process: how processes differ is assumed, not measured")
        return tuple(found)


def choose_recording(baseline: TimeRecord, sessions: Mapping[str, Session], now: Session) -> Recording:
    """The rounds taken on this GPU if there are any, else all; those of an unknown session are another GPU's."""
    here = rounds_on(now.uuid, baseline, sessions)
    rounds = here or baseline.rounds
    named = dict.fromkeys(one.session for one in rounds)
    compared = [sessions[name] for name in named if name in sessions]
    return Recording(
        rounds, bool(here), tuple(dict.fromkeys(_changes(compared, now))), canary_shifts(compared, now) or None
    )


def _changes(sessions: Iterable[Session], now: Session) -> Iterable[str]:
    """What differs from every session compared with."""
    for old in sessions:
        if old.driver != now.driver:
            yield f"driver {old.driver} -> {now.driver}"
        if None not in (old.power_limit_w, now.power_limit_w) and old.power_limit_w != now.power_limit_w:
            yield f"power limit {old.power_limit_w} W -> {now.power_limit_w} W"
        if None not in (old.ecc, now.ecc) and old.ecc != now.ecc:
            yield f"ECC {'on' if now.ecc else 'off'}"
        if None not in (old.mig, now.mig) and old.mig != now.mig:
            yield f"MIG {'on' if now.mig else 'off'}"
