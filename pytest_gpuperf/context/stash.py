"""Where a run keeps its objects: pytest's stashes, no globals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_gpuperf.context.shared_fixtures import SharedFixture, SharedFixtures
    from pytest_gpuperf.context.tests_found import FindingTests
    from pytest_gpuperf.options import Options
    from pytest_gpuperf.run import Run
    from pytest_gpuperf.test_record import TestRecord

STATIC_ONLY = "static only"
"""A test without a GPU, whose kernels were judged by their machine code; pytest's summary counts it as that."""

OPTIONS: pytest.StashKey[Options] = pytest.StashKey()
RUN: pytest.StashKey[Run] = pytest.StashKey()
FINDING: pytest.StashKey[FindingTests] = pytest.StashKey()
TEST_RECORD: pytest.StashKey[TestRecord] = pytest.StashKey()
SHARED: pytest.StashKey[SharedFixtures] = pytest.StashKey()


def run_of(config: pytest.Config) -> Run:
    """What this process shares, made at first use."""
    if RUN not in config.stash:
        from pytest_gpuperf.run import Run  # noqa: PLC0415 a plain run has none

        config.stash[RUN] = Run(config, config.stash[OPTIONS])
    return config.stash[RUN]


def record_of(item: pytest.Item) -> TestRecord:
    """What one test found, made when it first asks for a fixture."""
    if TEST_RECORD not in item.stash:
        item.stash[TEST_RECORD] = new_record(item.nodeid)
    return item.stash[TEST_RECORD]


def new_record(node_id: str) -> TestRecord:
    """An empty one."""
    from pytest_gpuperf.test_record import TestRecord  # noqa: PLC0415 a plain run has none

    module, _, test = node_id.partition("::")
    return TestRecord(module, test)


def shared_fixtures_of(item: pytest.Item) -> list[SharedFixture]:
    """Fixtures with kernels that a test shares with others, as far as they are set up."""
    return item.config.stash[SHARED].used_by(item) if SHARED in item.config.stash else []


def begin(item: pytest.Item) -> None:
    """A test begins, once more perhaps (pytest-rerunfailures): with nothing, as if it were the first time."""
    if TEST_RECORD in item.stash:
        del item.stash[TEST_RECORD]
        item.user_properties[:] = [one for one in item.user_properties if not one[0].startswith("gpuperf.")]
    item.config.stash[SHARED].begin(item)
    if "cuda_kernel" in getattr(item, "fixturenames", ()):  # a fixture's kernel may be all that it uses
        record_of(item)


def cut_short(item: pytest.Item) -> None:
    """Note that a test has ended by what is no failure: a keyboard interrupt, or an exit."""
    if TEST_RECORD in item.stash:
        item.stash[TEST_RECORD].ended_in = "call"
