"""What a shard's report has besides, so that ``gpuperf merge`` finds what one run of all tests would have found."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from pytest_gpuperf.judge.vanished import Vanished
from pytest_gpuperf.model.base_record import Record

OptionValue: TypeAlias = bool | int | float | str | list[str] | dict[str, float | None] | None


class Missed(Record, frozen=True):
    """Records that a shard answers for and that no test came to; what counts is known when all shards are together."""

    candidates: tuple[Vanished, ...] = ()
    """For whatever target, and as if there were no GPU."""
    targets_gone: tuple[str, ...] = ()
    """Targets that the manifest names and that have no folder."""
    unreadable: str = ""
    """Why this could not be told; empty if it could."""
    nothing_on_record: str = ""
    """A remark if there are no baselines at all."""
    elsewhere: str = ""
    """In its place where another folder has those of the tests that ran: it fails the run."""


class RunPart(Record, frozen=True):
    """One shard of a run."""

    plan: str
    """Digest of which shard runs which test, of all that was collected and of how: equal for shards of one run."""
    complete: bool
    """Every test of this shard came to its end."""
    tests_run: int
    options: dict[str, OptionValue]
    """What it was asked for, as far as it bears upon verdicts: equal for shards of one run."""
    archs: tuple[str, ...]
    """Static targets."""
    models: tuple[str, ...]
    """GPU models that its tests ran on."""
    without_gpu: bool
    """Tests ended early because there was no GPU."""
    full: bool
    """Nothing narrowed the run, so that what no test came to may fail it."""
    root: str
    """pytest's root."""
    revision: str = ""
    """What it was compared with in place of baselines; empty: with baselines."""
    changes: str = ""
    """Digest of what its tracked files have beyond their commit; empty: nothing."""
    failures: dict[str, str] = msgspec.field(default_factory=dict)
    """By the node id of a test that failed: why, in a line."""
    missed: Missed = Missed()
