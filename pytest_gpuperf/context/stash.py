"""Where a run keeps its objects: pytest's stashes, no globals."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.context.book import Book, TestBook
    from pytest_gpuperf.context.run_state import RunState
    from pytest_gpuperf.context.shared_fixtures import SharedFixture, SharedFixtures
    from pytest_gpuperf.context.tests_found import FindingTests
    from pytest_gpuperf.context.worker import Worker
    from pytest_gpuperf.counters.exchange import Collected
    from pytest_gpuperf.options import Options

PROCESS_BEGAN = time.perf_counter()
"""About when this process did: pytest imports its plugins before all tests and conftests."""

STATIC_ONLY = "static only"
"""A test without a GPU, whose kernels were judged by their machine code; pytest's summary counts it as that."""

OPTIONS: pytest.StashKey[Options] = pytest.StashKey()
WORKER: pytest.StashKey[Worker] = pytest.StashKey()
RUN_STATE: pytest.StashKey[RunState] = pytest.StashKey()
BOOK: pytest.StashKey[Book] = pytest.StashKey()
COLLECTED: pytest.StashKey[Collected] = pytest.StashKey()
SHARD_PLAN: pytest.StashKey[str] = pytest.StashKey()
"""Digest of which shard runs which test."""
OTHER_SHARDS: pytest.StashKey[frozenset[str]] = pytest.StashKey()
"""Tests that other shards run."""
FINDING: pytest.StashKey[FindingTests] = pytest.StashKey()
TEST_BOOK: pytest.StashKey[TestBook] = pytest.StashKey()
SHARED: pytest.StashKey[SharedFixtures] = pytest.StashKey()
STATUS: pytest.StashKey[int | None] = pytest.StashKey()
"""Exit status that a run's verdicts give it, in the process that tells them; None until they are told."""


def worker_of(config: pytest.Config) -> Worker:
    """This process's worker, made at first use."""
    if WORKER not in config.stash:
        from pytest_gpuperf.context.worker import Worker  # noqa: PLC0415 a plain run has none

        config.stash[WORKER] = Worker(config, config.stash[OPTIONS])
    return config.stash[WORKER]


def run_state_of(config: pytest.Config) -> RunState:
    """What this process keeps from test to test, made at first use."""
    if RUN_STATE not in config.stash:
        from pytest_gpuperf.context.run_state import RunState  # noqa: PLC0415 a plain run has none

        config.stash[RUN_STATE] = RunState(config)
    return config.stash[RUN_STATE]


def run_book_of(config: pytest.Config) -> Book:
    """The run's book, made at first use."""
    if BOOK not in config.stash:
        from pytest_gpuperf.context.book import Book  # noqa: PLC0415 a plain run has none

        config.stash[BOOK] = Book()
    return config.stash[BOOK]


def book_of(item: pytest.Item) -> TestBook:
    """One test's book, made when it first asks for a fixture."""
    if TEST_BOOK not in item.stash:
        item.stash[TEST_BOOK] = new_book(item.nodeid)
    return item.stash[TEST_BOOK]


def new_book(node_id: str) -> TestBook:
    """An empty one."""
    from pytest_gpuperf.context.book import TestBook  # noqa: PLC0415 a plain run has none

    module, _, test = node_id.partition("::")
    return TestBook(module, test)


def shared_fixtures_of(item: pytest.Item) -> list[SharedFixture]:
    """Fixtures with kernels that a test shares with others, as far as they are set up."""
    return item.config.stash[SHARED].used_by(item) if SHARED in item.config.stash else []


def begin(item: pytest.Item) -> None:
    """A test begins, once more perhaps (pytest-rerunfailures): with nothing, as if it were the first time."""
    if TEST_BOOK in item.stash:
        del item.stash[TEST_BOOK]
        item.user_properties[:] = [one for one in item.user_properties if not one[0].startswith("gpuperf.")]
    item.config.stash[SHARED].begin(item)
    if "cuda_kernel" in getattr(item, "fixturenames", ()):  # a fixture's kernel may be all that it uses
        book_of(item)


def cut_short(item: pytest.Item) -> None:
    """Note that a test has ended by what is no failure: a keyboard interrupt, or an exit."""
    if TEST_BOOK in item.stash:
        item.stash[TEST_BOOK].ended_in = "call"
