"""Missing records: what is recorded and what the run did not judge, by cause.

Pure.  A run answers for the test files below its paths, and for the tests that it was given by name.  What else is
recorded, and what ``-k``, a splitter or another plugin deselects, is left out: it is counted, and never missing.
A test that ran to its end fails itself for a part of its own that it did not reach (``session.static_gate``).
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from pytest_gpuperf.context.tests_found import Ended, TestsFound
from pytest_gpuperf.model.evidence import Key, is_below
from pytest_gpuperf.model.verdict import EvidenceKind


class RecordedWork(NamedTuple):
    """One workload's record for one target."""

    key: Key
    target: str
    kind: EvidenceKind


class MissingCause(enum.Enum):
    """Why nothing of a record was judged."""

    DELETED = "its test was deleted or renamed"
    SKIPPED = "its test was skipped, or failed as expected"
    NEEDED_GPU = "its test needs a GPU and was skipped"
    NOT_REACHED = "its test did not reach it"


FILE_GONE = "the file is gone"


class Missing(NamedTuple):
    """A record that the run should have judged."""

    record: RecordedWork
    cause: MissingCause
    detail: str = ""
    """The reason of a skip, as the test gives it; what is gone with a deleted test."""


@dataclasses.dataclass(frozen=True)
class RunSeen:
    """What a run collected and how it went."""

    found: TestsFound
    ends: Mapping[str, Ended]
    """By test; those that did not come to their end have none."""
    reported: Collection[str]
    """Tests, and fixtures that tests share, with evidence."""
    stopped: Collection[str]
    """Tests that ended early, at their first need for a GPU."""
    targets: Collection[str]
    """Architectures and GPU models that the run judges."""
    has_gpu: bool
    """A GPU was there, or had to be."""
    searches: Callable[[str], bool]
    """Whether the run was to collect every test of this module."""
    exists: Callable[[str], bool]
    """Whether the file of this module is there."""
    cut_short: bool = False
    """It ended with a failure before its last test, as by ``-x``."""


class LeftOut(NamedTuple):
    """The run was not asked for this record."""

    record: RecordedWork


def missing_records(
    recorded: Iterable[RecordedWork], judged: Collection[RecordedWork], run: RunSeen
) -> tuple[list[Missing], list[LeftOut]]:
    """What a run should have judged and did not, and what it was not asked for, in the order given."""
    states = [_state(record, run) for record in recorded if record not in judged]
    return [one for one in states if isinstance(one, Missing)], [one for one in states if isinstance(one, LeftOut)]


def _state(record: RecordedWork, run: RunSeen) -> Missing | LeftOut | None:
    """None: a failure that is red itself says why, or it is of a target of other runs."""
    node, module, found = record.key.node_id, record.key.module, run.found
    if any(is_below(node, place) for place in found.failed):
        return None
    if node in found.tests:
        if node not in found.selected:
            return LeftOut(record)
        return _of_test(record, run) if record.target in run.targets else None
    if not run.searches(module):
        return LeftOut(record)
    if not run.exists(module):
        return Missing(record, MissingCause.DELETED, FILE_GONE)
    skipped = [why for place, why in found.skipped.items() if is_below(node, place)]
    if skipped:
        return _skipped(record, skipped[0], run) if record.target in run.targets else None
    return Missing(record, MissingCause.DELETED) if module in found.modules else LeftOut(record)


def _of_test(record: RecordedWork, run: RunSeen) -> Missing | LeftOut | None:
    """Of a test that was to run."""
    node = record.key.node_id
    end, stopped = run.ends.get(node), node in run.stopped
    passed = end is not None and end.how == "passed"
    if end is not None and end.how == "failed":
        return None
    if node in run.reported and (stopped or passed):
        return None  # the test itself says what it did not reach
    if stopped:
        return Missing(record, MissingCause.NEEDED_GPU, "before its fixture compiled")
    if passed:
        return Missing(record, MissingCause.NOT_REACHED)
    if end is None:
        missing = Missing(record, MissingCause.NOT_REACHED, "the run ended before it")
        return LeftOut(record) if run.cut_short else missing
    return _skipped(record, end.reason, run)


def _skipped(record: RecordedWork, reason: str, run: RunSeen) -> Missing:
    needs_gpu = asks_for_gpu(reason) and not run.has_gpu
    return Missing(record, MissingCause.NEEDED_GPU if needs_gpu else MissingCause.SKIPPED, reason)


_GPU_WORDS = re.compile(r"gpu|cuda|cupy|nvidia|driver|device", re.IGNORECASE)


def asks_for_gpu(reason: str) -> bool:
    """Whether the reason of a skip speaks of a GPU or of what comes with one."""
    return _GPU_WORDS.search(reason) is not None
