"""Kernels of fixtures that tests share: judged once, in the test that answers for them, and handed on as their own.

That is the first user: of the tests in this process that use the fixture, the first that neither fails by itself nor is
expected to fail, for the failure of such a test would hide what the gate says.  It is so in each attempt at that test.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from pytest_gpuperf.baselines.baseline_errors import BaselineError
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.context.marker import settings_of
from pytest_gpuperf.context.shared_fixtures import SharedFixture
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session.judge_book import judge_book

StopsEarly = Callable[[pytest.Item, BaseException], bool]


def judge(item: pytest.Item, worker: Worker, book: TestBook, stops_early: StopsEarly, *, failed_itself: bool) -> str:
    """Judge what the test shares with others, unless another test answers for it.

    Returns why a baseline cannot be read; empty if all of them can.
    """
    mine = [one for one in stash.shared_fixtures_of(item) if one.first_user in ("", item.nodeid)]
    book.answers_for = tuple(one.book for one in mine)
    found = [_judge_once(item, worker, one, stops_early) for one in mine if not one.judged]
    if mine and not failed_itself and not _is_expected_to_fail(item):
        for one in mine:
            one.first_user = item.nodeid
    return next((problem for problem in found if problem), "")


def _is_expected_to_fail(item: pytest.Item) -> bool:
    return settings_of(item).xfail is not None or item.get_closest_marker("xfail") is not None


def _judge_once(item: pytest.Item, worker: Worker, shared: SharedFixture, stops_early: StopsEarly) -> str:
    shared.judged, book = True, shared.book
    stopped = shared.problem is not None and stops_early(item, shared.problem)
    if stopped:
        book.stop("static only", str(worker.no_device or shared.problem).splitlines()[0])
    whole = shared.problem is None
    book.whole = whole and worker.options.gates and worker.has_gpu
    unreadable = judge_book(item.config, worker, book, stopped=stopped, whole=whole)
    if unreadable or not (worker.has_gpu and worker.options.times):
        return unreadable
    try:
        for work in list(book.workloads.values()):
            book.add(_beside_times(item.config, worker, work))
    except BaselineError as problem:
        return str(problem)
    return ""


def _beside_times(config: pytest.Config, worker: Worker, work: WorkloadEvidence) -> WorkloadEvidence:
    """The kernel without its worse code for this GPU as a verdict, where a test measures it: its time outranks that."""
    native = worker.native_arch
    worse = [one for one in work.judgements if one.verdict is Verdict.WORSE and one.target == native]
    if not worse or native is None:
        return work
    key = _measured_by(config, worker, work, native)
    if key is None:
        return work
    judgements = tuple(_left_to(key, one) if one in worse else one for one in work.judgements)
    return msgspec.structs.replace(work, judgements=judgements)


def _left_to(key: Key, judgement: Judgement) -> Judgement:
    reason = f"worse by its machine code: {judgement.reason}; its time decides, which {key} measures"
    return msgspec.structs.replace(judgement, verdict=Verdict.SAME, reason=reason)


def _measured_by(config: pytest.Config, worker: Worker, work: WorkloadEvidence, arch: str) -> Key | None:
    """A workload of a test there is, with a time of this GPU on record of the code that the kernel has on record.

    Raises ``BaselineError``.
    """
    old = worker.store.static(arch, work.key, work.toolchain).record
    found = config.stash[stash.FINDING].found if stash.FINDING in config.stash else None
    if old is None or found is None:
        return None
    slug = worker.device.facts.slug
    timed = (key for key in worker.store.keys(slug) if key.node_id in found.tests)
    return next((key for key in sorted(timed) if _code_of(worker, slug, key) == old.profile.code_hash), None)


def _code_of(worker: Worker, slug: str, key: Key) -> str:
    record = worker.store.time(slug, key)
    return record.identity.code if record is not None and record.identity is not None else ""
