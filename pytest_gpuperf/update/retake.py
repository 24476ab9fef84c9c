"""Workloads that a recording process left disturbed, and what a fresh process has in their place.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence


def disturbed_in(tests: Iterable[TestEvidence], keys: Collection[Key]) -> tuple[Key, ...]:
    """Those of ``keys`` whose rounds are unfit as a baseline."""
    return tuple(sorted(work.key for one in tests for work in one.workloads if work.disturbances and work.key in keys))


def with_fit_rounds(tests: Iterable[TestEvidence], again: Iterable[TestEvidence]) -> tuple[TestEvidence, ...]:
    """``tests`` with what ``again`` has undisturbed in the place of their disturbed workloads."""
    fit = {work.key: work for one in again for work in one.workloads if work.time is not None and not work.disturbances}

    def better(work: WorkloadEvidence) -> WorkloadEvidence:
        return fit.get(work.key, work) if work.disturbances else work

    return tuple(msgspec.structs.replace(one, workloads=tuple(map(better, one.workloads))) for one in tests)
