"""The process that runs another revision's tests: started at its first use, one for each process that gates.

``revision.server`` is its other side.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import Revision, RevisionTask, flag_of
from pytest_gpuperf.process import children
from pytest_gpuperf.process.serving import START_S, ServingChild
from pytest_gpuperf.revision.imports import BOOTSTRAP, OWN, bootstrap_arguments
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.process_reference import OtherSideLost, Ready, Resume, RunTest, Started, TestEnded

ANSWER_S = 3600.0
"""Bound of a test, compilation included: for hangs alone."""
RECORD_ANEW = "record it with pytest --update-baselines=all"


class NotPaired(Exception):
    """A callable cannot be paired with its baseline: why, and what to do."""


class RevisionProcess:
    """One revision's process; it waits at a workload in the middle of a test, or between two tests."""

    def __init__(self, run: Run, revision: Revision) -> None:
        """Start it.  Raises ``OtherSideLost`` if it cannot be, and ``pytest.UsageError`` as ``places_there`` does."""
        config = run.config
        self.commit = revision.commit
        self.test = ""
        """Node id of the test that it is in, empty between two."""
        self.pairs = False
        """Whether it stops at the callables of that test."""
        self.lost = False
        """A test has left it without a GPU."""
        self._at: Ready | None = None
        """The workload of that test at which it waits."""
        self._started: Started | None = None
        start = revision.tree / os.path.relpath(config.invocation_params.dir.resolve(), revision.top)

        def command(folder: Path, reading: int, writing: int) -> list[str]:
            return _command(config, RevisionTask(
                folder=folder, revision=revision, reading=reading, writing=writing, worker=run.number
            ))  # fmt: skip

        self.child = ServingChild(command, start if start.is_dir() else revision.tree, run.environ)
        """Its link is for the samples of the workload at which it waits, too."""

    def tests(self) -> frozenset[str]:
        """Node ids of its tests that may measure something, once it has collected.  Raises ``OtherSideLost``."""
        if self._started is None:
            self._started = self.child.link.receive(Started, START_S)
        return self._started.tests

    def ask(self, request: RunTest) -> None:
        """Let it run a test.  Raises ``OtherSideLost``."""
        self.ended()
        self.child.link.send(request)
        self.test, self.pairs = request.node_id, request.how == "pair"

    def ended(self) -> TestEnded | None:
        """How its test ends, which has no work in flight then and holds no arrays.  Raises ``OtherSideLost``."""
        found: Ready | TestEnded | None = None
        while self.test:
            found = self._next()
        return found if isinstance(found, TestEnded) else None

    def arrive(self, key: Key) -> Ready:
        """Let it reach a workload, and wait there.  Raises ``OtherSideLost``, ``NotPaired`` where its test does not."""
        if self.test != key.node_id:
            self.ask(RunTest(node_id=key.node_id, how="pair"))
        found: Ready | TestEnded = self._at or self._next()
        while isinstance(found, Ready):
            if found.workload == key.workload:
                return found
            found = self._next()
        raise NotPaired(found.why or "its test does not reach this workload there")

    def _next(self) -> Ready | TestEnded:
        """The next workload of its test, or how that ends."""
        self.tests()
        if self._at is not None:
            self.child.link.send(Resume())
            self._at = None
        found: Ready | TestEnded = self.child.link.receive(Ready | TestEnded, ANSWER_S)
        if isinstance(found, TestEnded):
            self.test, self.lost = "", found.last
        else:
            self._at = found
        return found

    def close(self) -> None:
        self.child.close(at_once=bool(self.test) or self._started is None)


# --- the one of this process -----------------------------------------------------------------------

RUNNING: pytest.StashKey[RevisionProcess] = pytest.StashKey()


def process_for(run: Run, revision: Revision) -> RevisionProcess:
    """This process's partner, started at its first use.  Raises ``OtherSideLost`` and ``NotPaired``."""
    config = run.config
    running = config.stash.get(RUNNING, None)
    if running is not None and (running.lost or running.commit != revision.commit):
        give_up(config)
    if RUNNING not in config.stash:
        if places_there(config, revision) is None:
            raise NotPaired(f"{revision.name} has none of these test files: commit them, then {RECORD_ANEW}")
        config.stash[RUNNING] = RevisionProcess(run, revision)
        config.add_cleanup(functools.partial(give_up, config))
    return config.stash[RUNNING]


def finish_test(config: pytest.Config) -> None:
    """Let the partner end a test in which it is paired, at the end of this process's: it holds no memory then."""
    running = config.stash.get(RUNNING, None)
    if running is not None and running.pairs:
        try:
            running.ended()
        except OtherSideLost as problem:
            lose(config, problem)


def lose(config: pytest.Config, problem: OtherSideLost, *, log: bool = False) -> str:
    """Give up the partner, which has ended or does not answer: why; the end of its output too, with its ``log``."""
    running = config.stash.get(RUNNING, None)
    why = running.child.explained(problem) if running is not None else str(problem)
    why = "\n  ".join([why, *(running.child.last_output() if log and running is not None else ())])
    give_up(config)
    return why


def give_up(config: pytest.Config) -> None:
    """End the partner; its next use starts another one."""
    if RUNNING in config.stash:
        process = config.stash[RUNNING]
        del config.stash[RUNNING]
        process.close()


# --- its command line ------------------------------------------------------------------------------


def _command(config: pytest.Config, task: RevisionTask) -> list[str]:
    """The command line of this run for the worktree of another revision, which is configured by its own ini file."""
    revision = task.revision
    root = revision.tree / config.rootpath.resolve().relative_to(revision.top)
    ini = None if config.inipath is None else root / config.inipath.name
    own = children.own_options(config, task.folder, root, ini if ini is not None and ini.is_file() else None)
    return [
        str(config.stash[stash.OPTIONS].against_env or sys.executable), "-c", BOOTSTRAP,
        *bootstrap_arguments(revision.others, revision.tree, as_module=children.is_module(config)),
        *children.given_options(config), *own, "--continue-on-collection-errors", "-p", f"{OWN}.revision.server",
        flag_of(task), f"--gpuperf-arch={','.join(revision.archs)}", *(places_there(config, revision) or ()),
    ]  # fmt: skip


def places_there(config: pytest.Config, revision: Revision) -> list[str] | None:
    """Where the worktree has the places that the run was given: empty for its own usual ones, None if it has none.

    Raises ``pytest.UsageError`` for a place outside of the repository.
    """
    given = [config.invocation_params.dir / place.partition("::")[0] for place in children.given_places(config)]
    there = [revision.tree / _inside(config, revision, place) for place in given]
    found = [str(place) for place in dict.fromkeys(there) if place.exists()]
    return None if given and not found else found


def _inside(config: pytest.Config, revision: Revision, given: Path) -> Path:
    """A place as seen from the top of the working tree; links inside of it are kept."""
    start = config.invocation_params.dir
    seen = (given, start.resolve() / os.path.relpath(given, start), given.resolve())
    paths = [path for path in map(Path, map(os.path.normpath, seen)) if path.is_relative_to(revision.top)]
    if not paths:
        raise pytest.UsageError(
            f"{given} lies outside of the repository {revision.top}, so --gpuperf-against has no other revision of it. "
            "To do: start pytest in the repository of the tests"
        )
    return next(filter(Path.exists, paths), paths[0]).relative_to(revision.top)
