"""Where a run keeps its objects: pytest's stashes, no globals; and which test or fixture compiles now."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_gpuperf.arguments import BadArgument

if TYPE_CHECKING:
    from pytest_gpuperf.options import Options
    from pytest_gpuperf.run import Run
    from pytest_gpuperf.test_record import TestRecord

    Fixture = pytest.FixtureDef[Any]

OPTIONS: pytest.StashKey[Options] = pytest.StashKey()
RUN: pytest.StashKey[Run] = pytest.StashKey()
TEST_RECORD: pytest.StashKey[TestRecord] = pytest.StashKey()
SHARED: pytest.StashKey[SharedFixtures] = pytest.StashKey()


def run_of(config: pytest.Config) -> Run:
    """The shared state of this process, made at first use."""
    if RUN not in config.stash:
        from pytest_gpuperf.run import Run  # noqa: PLC0415 a plain run has none

        config.stash[RUN] = Run(config, config.stash[OPTIONS])
    return config.stash[RUN]


def record_of(item: pytest.Item) -> TestRecord:
    """The record of one test, made when it first asks for a fixture."""
    if TEST_RECORD not in item.stash:
        item.stash[TEST_RECORD] = new_record(item.nodeid)
    return item.stash[TEST_RECORD]


def new_record(node_id: str) -> TestRecord:
    """An empty one."""
    from pytest_gpuperf.test_record import TestRecord  # noqa: PLC0415 a plain run has none

    return TestRecord(node_id)


def shared_fixtures_of(item: pytest.Item) -> list[SharedFixture]:
    """Fixtures with kernels that a test shares with others, as far as they are set up."""
    return item.config.stash[SHARED].used_by(item)


def begin(item: pytest.Item) -> None:
    """A test begins, once more perhaps (pytest-rerunfailures): with nothing, as if it were the first time."""
    if TEST_RECORD in item.stash:
        del item.stash[TEST_RECORD]
        item.user_properties[:] = [one for one in item.user_properties if not one[0].startswith("gpuperf.")]
    item.config.stash[SHARED].item = item
    if "cuda_kernel" in getattr(item, "fixturenames", ()):  # a fixture's kernel may be all that it uses
        record_of(item)


# --- kernels of fixtures that several tests share -------------------------------------------------------


class CompileLocation(NamedTuple):
    """Where a kernel is compiled."""

    record: TestRecord
    folder: Path
    """Paths are relative to it."""
    file: str
    """Name of the file in messages."""


@dataclasses.dataclass(eq=False)
class SharedFixture:
    """A fixture of a wider scope than one test, set up or being set up."""

    name: str
    function: Any
    below: str
    """How node ids begin of the tests that may use it."""
    record: TestRecord | None = None
    """Record of its kernels; None while it has none."""

    @functools.cached_property
    def file(self) -> Path:
        """With its function, or with the class of an object that is called as one."""
        function = inspect.unwrap(self.function)
        return Path(inspect.getfile(function if inspect.isroutine(function) else type(function))).resolve()


class SharedFixtures:
    """A plugin that ``plugin`` registers in every process; pytest-xdist's workers each have fixtures of their own."""

    def __init__(self) -> None:
        self.item: pytest.Item | None = None
        """The current test: kernels that no shared fixture compiles in its setup are its own."""
        self._running: list[SharedFixture] = []
        self._known: dict[Fixture, SharedFixture] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Fixture, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        if fixturedef.scope == "function" or isinstance(request.node, pytest.Item):
            return (yield)
        below = "" if isinstance(request.node, pytest.Session) else request.node.nodeid
        running = self._known[fixturedef] = SharedFixture(fixturedef.argname, fixturedef.func, below)
        self._running.append(running)
        try:
            return (yield)
        finally:
            self._running.pop()

    def location(self) -> CompileLocation:
        """Where a kernel is compiled that is asked for now.  Raises ``BadArgument`` before the first test."""
        if self.item is None:
            raise BadArgument("cuda_kernel is called before the first test: call it in a test or in a fixture's setup")
        if not self._running:
            return CompileLocation(record_of(self.item), self.item.path.parent, "the test file")
        running = self._running[-1]
        if running.record is None:
            running.record = new_record(f"{self.item.nodeid.partition('::')[0]}::{running.name}")
        return CompileLocation(running.record, running.file.parent, f"the file that defines the fixture {running.name}")

    def used_by(self, item: pytest.Item) -> list[SharedFixture]:
        names = getattr(item, "fixturenames", ())
        with_kernels = (one for one in self._known.values() if one.record is not None and one.name in names)
        return [one for one in with_kernels if item.nodeid.startswith(one.below)]
