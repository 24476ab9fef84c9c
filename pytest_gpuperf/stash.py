"""Where a run keeps its objects: pytest's stashes, no globals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.bench import Bench
    from pytest_gpuperf.counters.exchange import Collected
    from pytest_gpuperf.options import Options
    from pytest_gpuperf.session import Book, TestBook

OPTIONS: pytest.StashKey[Options] = pytest.StashKey()
BENCH: pytest.StashKey[Bench] = pytest.StashKey()
BOOK: pytest.StashKey[Book] = pytest.StashKey()
COLLECTED: pytest.StashKey[Collected] = pytest.StashKey()
TEST_BOOK: pytest.StashKey[TestBook] = pytest.StashKey()


def bench_of(config: pytest.Config) -> Bench:
    """This process's bench, made at first use."""
    if BENCH not in config.stash:
        from pytest_gpuperf.bench import Bench

        config.stash[BENCH] = Bench(config, config.stash[OPTIONS])
    return config.stash[BENCH]


def run_book_of(config: pytest.Config) -> Book:
    """The run's book, made at first use."""
    if BOOK not in config.stash:
        from pytest_gpuperf.session import Book

        config.stash[BOOK] = Book()
    return config.stash[BOOK]


def book_of(item: pytest.Item) -> TestBook:
    """One test's book, made when it first asks for a fixture."""
    if TEST_BOOK not in item.stash:
        from pytest_gpuperf.session import TestBook

        module, _, test = item.nodeid.partition("::")
        item.stash[TEST_BOOK] = TestBook(module, test)
    return item.stash[TEST_BOOK]


def cut_short(item: pytest.Item) -> None:
    """Note that a test has ended by what is no failure: a keyboard interrupt, or an exit."""
    if TEST_BOOK in item.stash:
        item.stash[TEST_BOOK].ended_in = "call"


def forget(item: pytest.Item) -> None:
    """Let a test that runs once more (pytest-rerunfailures) begin with nothing, as if it were the first time."""
    if TEST_BOOK in item.stash:
        del item.stash[TEST_BOOK]
        item.user_properties[:] = [one for one in item.user_properties if not one[0].startswith("gpuperf.")]
