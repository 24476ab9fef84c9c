"""Fixtures that several tests share and that compile kernels: which one is being set up, and a book for each.

A kernel of such a fixture is on record under the fixture and not under a test, so that the order of tests, ``-k`` and
pytest-xdist have no say in where (``context.fixture_keys``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_gpuperf.arguments import BadArgument
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.fixture_keys import defining_file, key_of

if TYPE_CHECKING:
    from pytest_gpuperf.context.book import TestBook
    from pytest_gpuperf.context.kernel_labels import CompiledKernel

    Fixture = pytest.FixtureDef[Any]


class Site(NamedTuple):
    """Where a kernel is compiled."""

    book: TestBook
    folder: Path
    """Paths are relative to it."""
    file: str
    """What messages call the file in that folder."""
    shared_by: Callable[[], str] = str
    """Names the fixture whose tests share the kernel, once it is set up; empty before, and of a test's own kernel."""
    check: Callable[[], None] = lambda: None
    """Raises ``BadArgument`` if what was compiled is another kernel than one on record under its name would be."""


class SharedFixture:
    """One instance of a fixture that outlives a test and compiled kernels."""

    def __init__(
        self, name: str, book: TestBook, file: Path, below: str, asked_by: str, before: Sequence[CompiledKernel]
    ) -> None:  # fmt: skip
        """``below`` is the node id of what it lives as long as, ``asked_by`` that of the test that it was set up for.

        ``before`` are kernels of the instance of this name that was set up before it.
        """
        self._before = before
        self.name = name
        self.book = book
        self.file = file
        """That defines it."""
        self._below = below
        self._asked_by = asked_by
        self.is_set_up = False
        self.problem: BaseException | None = None
        """What ended its setup."""
        self.judged = False
        self.first_user = ""
        """Node id of the test that answers for its kernels; empty while none does."""

    def is_used_by(self, item: pytest.Item) -> bool:
        names = getattr(item, "fixturenames", ())
        return item.nodeid == self._asked_by or (self.name in names and item.nodeid.startswith(self._below))

    def check(self) -> None:
        """Raise ``BadArgument`` if an instance before it compiled other kernels: both would have one baseline."""
        for kernel in self.book.kernels:
            earlier = [one for one in self._before if one.name == kernel.name]
            new = kernel.evidence
            if earlier and all(one.is_another(new.static, new.toolchain) for one in earlier):
                raise BadArgument(
                    f"cuda_kernel: the fixture {self.name} compiled another {kernel.name} than when it was set up "
                    f"before, and both would be on record as {new.key.node_id}: tell its parameters apart by ids=, or "
                    "give the kernels names of their own"
                )

    def shared_by(self) -> str:
        """Its name for messages; empty while it is set up."""
        return f"the fixture {self.name}" if self.is_set_up else ""


class _SetUp:
    """A fixture whose function runs."""

    def __init__(self, fixture: Fixture, request: pytest.FixtureRequest) -> None:
        self.fixture = fixture
        self.node = request.node
        """Of pytest's tree: the fixture lives as long as it."""
        self.at_end = request.addfinalizer
        self.made: SharedFixture | None = None


class SharedFixtures:
    """A plugin that ``plugin`` registers in every process; pytest-xdist's workers each have fixtures of their own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._item: pytest.Item | None = None
        self._running: list[_SetUp] = []
        self._found: dict[str, SharedFixture] = {}
        """By the node id of their book."""

    def begin(self, item: pytest.Item) -> None:
        """A test begins: what is compiled outside of the setup of a shared fixture is its own from here."""
        self._item = item

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Fixture, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        if fixturedef.scope == "function":
            return (yield)
        running = _SetUp(fixturedef, request)
        self._running.append(running)
        try:
            return (yield)
        except BaseException as problem:
            if running.made is not None:
                running.made.problem = problem
            raise
        finally:
            self._running.pop()
            if running.made is not None:
                running.made.is_set_up = True

    def site(self) -> Site:
        """Where a kernel is compiled that is asked for now.  Raises ``BadArgument`` for a fixture without a place."""
        if self._item is None:
            raise BadArgument("cuda_kernel is called before the first test: call it in a test or in a fixture's setup")
        running = self._running[-1] if self._running else None
        if running is None or isinstance(running.node, pytest.Item):
            return Site(stash.book_of(self._item), self._item.path.parent, "the test file")
        if running.made is None:
            running.made = self._made(running, self._item)
        shared = running.made
        file = f"the file that defines the fixture {shared.name}"
        return Site(shared.book, shared.file.parent, file, shared.shared_by, shared.check)

    def used_by(self, item: pytest.Item) -> list[SharedFixture]:
        """Those with kernels that a test uses, as far as they are set up."""
        return [one for one in self._found.values() if one.is_used_by(item)]

    def _made(self, running: _SetUp, item: pytest.Item) -> SharedFixture:
        fixture, file = running.fixture, defining_file(running.fixture)
        name, key = fixture.argname, key_of(item, fixture, running.node)
        if file is None or key is None:
            where = "by no Python function" if file is None else f"in {file}, outside of pytest's root {self._root}"
            raise BadArgument(
                f"cuda_kernel: the {fixture.scope}-scoped fixture {name} is defined {where}, so that "
                f"{'paths' if file is None else 'its baselines'} would have no place: define it as a function in a "
                "conftest.py or test file below the root, or compile in a test"
            )
        before = self._found[key].book.kernels if key in self._found else ()
        below = "" if isinstance(running.node, pytest.Session) else running.node.nodeid
        made = self._found[key] = SharedFixture(name, stash.new_book(key), file, below, item.nodeid, before)
        running.at_end(made.book.cubins.clear)
        return made
