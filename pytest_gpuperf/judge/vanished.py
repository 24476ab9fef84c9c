"""Which records no test of a run came to, and why: deleted, skipped, ended without asking, file gone.

Tests that ran to their end with evidence, or stopped early, say themselves what they did not come to
(``session.static_gate``); here is what has no test, or a test that gathered nothing.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Literal, NamedTuple

from pytest_gpuperf.model.evidence import Key, is_below
from pytest_gpuperf.model.fixture_names import fixture_of
from pytest_gpuperf.model.verdict import EvidenceKind


class Ended(NamedTuple):
    """How a test ended."""

    how: Literal["passed", "failed", "skipped", "xfailed"]
    reason: str = ""
    """Why it was skipped, or expected to fail."""


class OnRecord(NamedTuple):
    """One workload's record for one target."""

    key: Key
    target: str
    kind: EvidenceKind


class WhyVanished(enum.Enum):
    """Why no test came to a record."""

    DELETED = "its test is gone"
    FILE_GONE = "its test file is gone"
    NOT_COLLECTED = "its test file is there and was not collected"
    ELSEWHERE = "its test file lies outside of the folders that this run searched"
    DESELECTED = "its test was collected and then left out, by what this project's own settings or hooks select"
    SKIPPED = "its test or its test file was skipped, or failed as expected"
    RENAMED = "its work goes on under another name"
    NOT_ASKED = "its test passed and asked for no kernel and no measurement"


class Vanished(NamedTuple):
    """A record that no test came to."""

    record: OnRecord
    cause: WhyVanished
    reason: str = ""
    """Of a skip or an expected failure, as the test gives it."""
    needs_gpu: bool = False
    """Skipped by a test that says it needs a GPU, in a run without one."""


@dataclasses.dataclass(frozen=True)
class RunSeen:
    """What a run met.  Ids are node ids, modules their paths as in node ids."""

    tests: Collection[str]
    """Every test that there is, deselected ones included."""
    selected: Collection[str]
    modules: Collection[str]
    """Test files that were collected."""
    failed: Collection[str]
    """Files, folders and classes that could not be collected."""
    skipped: Mapping[str, str]
    """Those that skipped themselves, with their reason."""
    ends: Mapping[str, Ended]
    """By test; those that left it to themselves to say what they did not come to have none."""
    reached: Mapping[str, Collection[OnRecord]]
    """What was judged of the tests that have evidence."""
    covered: Collection[str]
    """Modules on record that the run searched for, and was not told to search in part; of others it answers for the
    tests that it chose."""
    missing: Collection[str]
    """Modules on record without a file."""
    full: bool
    """Nothing narrowed what was collected."""
    whole: bool
    """It searched all that the project searches, not a path of the user's choice."""
    elsewhere: Set[str] = frozenset()
    """Tests that other shards of the run have."""
    users: Mapping[str, Collection[str]] = dataclasses.field(default_factory=dict)
    """Tests by what a fixture that they share is called on record, deselected ones included."""


REMARKED = (WhyVanished.ELSEWHERE, WhyVanished.DESELECTED)
"""Causes that a project may have settled on, and gate in a run of its own: told, and never red."""
_THERE = (WhyVanished.DESELECTED, WhyVanished.SKIPPED, WhyVanished.NOT_ASKED)
"""Causes of tests that are there: what they did not come to counts for the targets of their run alone."""


def candidates(records: Iterable[OnRecord], run: RunSeen) -> list[Vanished]:
    """The records that no test came to, in the order given.

    For whatever targets the run had, and as if it had no GPU: one shard of it does not know.
    """
    found = (_judged(record, run) for record in records)
    return [one for one in found if one is not None]


def settled(found: Iterable[Vanished], targets: Collection[str], *, has_gpu: bool) -> list[Vanished]:
    """Of ``candidates`` those that count in a run that judges these targets: architectures, and its GPU model."""
    return [
        one._replace(needs_gpu=one.needs_gpu and not has_gpu)
        for one in found
        if one.cause not in _THERE or one.record.target in targets
    ]


def _judged(record: OnRecord, run: RunSeen) -> Vanished | None:
    """By its test, or by the tests that ask for its fixture; None: it was judged, or others say why not."""
    module, node, of_fixture = record.key.module, record.key.node_id, bool(fixture_of(record.key.test))
    if any(of_fixture or is_below(node, place) for place in run.failed):  # what was not collected may use the fixture
        return None
    if of_fixture and node in run.reached:  # who came there says of the fixture's other kernels what became of them
        return None
    skipped = next((reason for place, reason in run.skipped.items() if is_below(node, place)), None)
    if skipped is not None:
        return _ended(record, [Ended("skipped", skipped)], run)
    users = run.users.get(node, ()) if of_fixture else {node}.intersection(run.tests)
    chosen = [test for test in users if test in run.selected]
    if chosen:
        return _ended(record, [run.ends.get(test) for test in chosen], run)
    if module not in run.covered and (of_fixture or module in run.modules):
        return None
    if not of_fixture and module not in run.modules:
        return _of_file(record, run)
    if users:  # the user's own choice and another shard's part are no news
        left_out = run.full and run.elsewhere.isdisjoint(users)
        return Vanished(record, WhyVanished.DESELECTED) if left_out else None
    return _unused(record, run) if of_fixture else Vanished(record, WhyVanished.DELETED)


def _ended(record: OnRecord, ends: Sequence[Ended | None], run: RunSeen) -> Vanished | None:
    """Of tests that are there, by how they ended: one that passed or failed tells more than those that skipped."""
    hows = {end.how for end in ends if end is not None}
    reached = run.reached.get(record.key.node_id)
    if "failed" in hows or (reached is not None and record in reached):
        return None
    if "passed" in hows:
        return Vanished(record, WhyVanished.NOT_ASKED) if reached is None else None
    if None in ends:  # stopped early, for want of a GPU: a test itself says what it did not come to
        early = "it stopped before its fixture compiled"
        is_test = not fixture_of(record.key.test)
        return None if is_test else Vanished(record, WhyVanished.SKIPPED, early, needs_gpu=True)
    end = next(end for end in ends if end is not None)
    return Vanished(record, WhyVanished.SKIPPED, end.reason, end.how == "skipped" and asks_for_gpu(end.reason))


def _unused(record: OnRecord, run: RunSeen) -> Vanished | None:
    """Of a fixture that no collected test asks for: only a run that collected all it could says anything of it."""
    if not run.full or not (run.whole or record.key.module in run.modules):
        return None
    if record.key.module in run.missing:
        return Vanished(record, WhyVanished.FILE_GONE)
    reason = next(iter(run.skipped.values()), None)  # a skipped file may be its user
    if reason is not None:
        return _ended(record, [Ended("skipped", reason)], run)
    return Vanished(record, WhyVanished.DELETED, "no test asks for it")


def _of_file(record: OnRecord, run: RunSeen) -> Vanished | None:
    """Of a test file that was not collected: only a run that collected all it could says anything of it."""
    module = record.key.module
    if not run.full or not (run.whole or module in run.covered):
        return None
    if module in run.missing:
        return Vanished(record, WhyVanished.FILE_GONE)
    return Vanished(record, WhyVanished.NOT_COLLECTED if module in run.covered else WhyVanished.ELSEWHERE)


_GPU_WORDS = re.compile(r"gpu|cuda|cupy|nvidia|driver|device", re.IGNORECASE)


def asks_for_gpu(reason: str) -> bool:
    """Whether the reason of a skip speaks of a GPU or of what comes with one."""
    return _GPU_WORDS.search(reason) is not None
