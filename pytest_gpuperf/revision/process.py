"""The process that runs another revision's tests: started at its first use, one for each process that gates.

``revision.server`` is its other side.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import FOUND_FILE, TASK_FILE, Revision, RevisionFound, RevisionTask, write_task
from pytest_gpuperf.process.children import (
    LOG_LINES,
    RunningChild,
    errors_in,
    given_options,
    given_places,
    is_module,
    log_lines,
    own_options,
)
from pytest_gpuperf.revision.imports import BOOTSTRAP, bootstrap_arguments
from pytest_gpuperf.revision.worktree import renamed_since
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.process_opponent import Left, Link, OtherSideLost, Quit, Ready, Resume, RunTest, TestEnded

EVIDENCE_S = 4 * 3600.0
"""Bound of all tests of a revision, whose kernels are compiled: it is there for hangs alone."""
START_S = 300.0
"""For its start, imports and collection included, and for a test to reach its workload, compilation included."""
GRACE_S = 10.0
"""For its end."""


class NotPaired(Exception):
    """A callable cannot run beside its baseline: why, and what to do."""


class RevisionProcess:
    """One revision's process; it waits at a workload in the middle of a test, or between two tests."""

    def __init__(
        self, config: pytest.Config, revision: Revision, environ: Mapping[str, str], named: tuple[str, ...] = (), *,
        evidence: bool = False,
    ) -> None:  # fmt: skip
        """Start it, with ``evidence`` to run all tests, or those that are ``named``, before any that it is told to.

        Raises ``OtherSideLost`` if it cannot be started, and ``pytest.UsageError`` as ``_command`` does.
        """
        self.commit = revision.commit
        self._scratch = scratch_folder("gpuperf-revision-")
        self._folder = Path(self._scratch.name)
        self._log = self._folder / "log"
        self._test = ""
        """Node id of the test that it is in; empty between two."""
        self._at: Ready | None = None
        """The workload of that test at which it waits."""
        to_read, to_write = os.pipe(), os.pipe()
        self.link = Link(to_read[0], to_write[1])
        """For the samples of the workload at which it waits."""
        task = RevisionTask(
            folder=self._folder, others=revision.others, tree=revision.tree, named=named, evidence=evidence,
            reading=to_write[0], writing=to_read[1],
        )  # fmt: skip
        start = revision.tree / os.path.relpath(config.invocation_params.dir.resolve(), revision.top)
        try:
            self._child = RunningChild(
                _command(config, revision, task), start if start.is_dir() else revision.tree, self._log, environ,
                (task.reading, task.writing),
            )  # fmt: skip
        except OSError as problem:
            self.link.close()
            raise OtherSideLost(f"it cannot be started ({problem})") from None
        finally:
            os.close(task.reading)
            os.close(task.writing)

    def evidence(self) -> RevisionFound:
        """What its tests run.  Raises ``OtherSideLost``."""
        self.link.receive(Left, EVIDENCE_S)
        return msgspec.json.decode((self._folder / FOUND_FILE).read_bytes(), type=RevisionFound)

    def arrive(self, key: Key) -> Ready:
        """Let it reach a workload, and wait there.  Raises ``OtherSideLost``, ``NotPaired`` where its test does not."""
        self.begin(key.node_id)
        found: Ready | TestEnded = self._at or self._next()
        while isinstance(found, Ready):
            if found.workload == key.workload:
                return found
            found = self._next()
        raise NotPaired(found.why or "its test passes there and does not reach this workload")

    def begin(self, node_id: str) -> None:
        """Let it run a test, if that is not the one that it is in.  Raises ``OtherSideLost``."""
        if self._test != node_id:
            self.leave()
            self.link.send(RunTest(node_id=node_id))
            self._test = node_id

    def leave(self) -> None:
        """Let it end its test: it has no work in flight then, and holds no arrays.  Raises ``OtherSideLost``."""
        while self._test:
            self._next()

    def _next(self) -> Ready | TestEnded:
        """The next workload of its test, or how that ends."""
        if self._at is not None:
            self.link.send(Resume())
            self._at = None
        found: Ready | TestEnded = self.link.receive(Ready | TestEnded, START_S)
        if isinstance(found, TestEnded):
            self._test = ""
        else:
            self._at = found
        return found

    def close(self, grace_s: float = GRACE_S) -> None:
        """End it."""
        with contextlib.suppress(OtherSideLost):
            self.link.send(Quit())
        self._child.end(0.0 if self._test else grace_s)
        self.link.close()
        self._scratch.cleanup()

    def explained(self, problem: OtherSideLost) -> str:
        """How it ended, if it did, and its first error."""
        status = self._child.waited(1.0)
        ended = f" (pytest exit status {status})" if status is not None else ""
        errors = errors_in(log_lines(self._log))
        return f"{problem}{ended}{f': {errors[0]}' if errors else ''}"

    def last_lines(self) -> str:
        """The end of its output."""
        return "".join(f"\n  {line}" for line in log_lines(self._log)[-LOG_LINES:])


# --- the one of this process -----------------------------------------------------------------------

RUNNING: pytest.StashKey[RevisionProcess] = pytest.StashKey()


def keep_running(config: pytest.Config, process: RevisionProcess) -> None:
    """Let it be this process's partner until the end of the run."""
    config.stash[RUNNING] = process
    config.add_cleanup(functools.partial(give_up, config))


def process_for(worker: Run, revision: Revision) -> RevisionProcess:
    """This process's partner, started at its first use.  Raises ``OtherSideLost`` and ``NotPaired``."""
    config = worker.config
    if RUNNING in config.stash and config.stash[RUNNING].commit != revision.commit:
        give_up(config)
    if RUNNING not in config.stash:
        if places_there(config, revision) is None:
            raise NotPaired(f"{revision.name} has none of these test files")
        keep_running(config, RevisionProcess(config, revision, worker.child_environment()))
    return config.stash[RUNNING]


def leave_test(config: pytest.Config) -> None:
    """Let the partner end its test, at the end of this process's: it holds no memory then."""
    if RUNNING in config.stash:
        try:
            config.stash[RUNNING].leave()
        except OtherSideLost:
            give_up(config)


def give_up(config: pytest.Config) -> None:
    """End the partner; the next callable starts another one."""
    if RUNNING in config.stash:
        process = config.stash[RUNNING]
        del config.stash[RUNNING]
        process.close()


# --- its command line ------------------------------------------------------------------------------


def _command(config: pytest.Config, revision: Revision, task: RevisionTask) -> list[str]:
    """The command line of this run for the worktree of another revision, which is configured by its own ini file."""
    write_task(task, task.folder / TASK_FILE)
    root = revision.tree / config.rootpath.resolve().relative_to(revision.top)
    ini = None if config.inipath is None else root / config.inipath.name
    own = own_options(config, task.folder, root, ini if ini is not None and ini.is_file() else None)
    return [
        str(config.stash[stash.OPTIONS].against_python or sys.executable), "-c", BOOTSTRAP,
        *bootstrap_arguments(task.others, task.tree, as_module=is_module(config)), *given_options(config), *own,
        "--continue-on-collection-errors", f"--gpuperf-task={task.folder / TASK_FILE}",
        f"--gpuperf-arch={','.join(revision.archs)}", *(places_there(config, revision) or ()),
    ]  # fmt: skip


def places_there(config: pytest.Config, revision: Revision) -> list[str] | None:
    """Where the worktree has the places that the run was given: empty for its own usual ones, None if it has none.

    Raises ``pytest.UsageError`` for a place outside of the repository.
    """
    given = given_places(config)
    found = list(dict.fromkeys(place for one in given for place in _place_there(config, revision, one)))
    return None if given and not found else found


def _place_there(config: pytest.Config, revision: Revision, place: str) -> list[str]:
    """Where the worktree has a file or folder, under this name or what git says that was renamed."""
    given = config.invocation_params.dir / place.partition("::")[0]
    start = config.invocation_params.dir
    seen = (given, start.resolve() / os.path.relpath(given, start), given.resolve())  # links inside of it are kept
    paths = [path for path in map(Path, map(os.path.normpath, seen)) if path.is_relative_to(revision.top)]
    inside = next((path.relative_to(revision.top) for path in (*filter(Path.exists, paths), *paths)), None)
    if inside is None:
        raise pytest.UsageError(
            f"{place} lies outside of the repository {revision.top}, so --gpuperf-against has no other revision of it: "
            "start pytest in the repository that the tests belong to"
        )
    if (revision.tree / inside).exists():
        return [str(revision.tree / inside)]
    origins = sorted(renamed_since(revision.top, revision.tree).items())
    patterns = config.getini("python_files")
    return [
        str(revision.tree / was)
        for name, was in origins
        if name == inside or (inside in name.parents and any(fnmatch.fnmatch(was.name, one) for one in patterns))
    ]
