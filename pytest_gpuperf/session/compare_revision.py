"""Comparing with another revision: its tests run in a process of their own, and what they run is the baseline.

``session.revision_side`` is what that process does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.compile.cache import default_folder, make_private
from pytest_gpuperf.context import stash
from pytest_gpuperf.context.book import Book
from pytest_gpuperf.context.child_command import revision_command
from pytest_gpuperf.context.child_process import LOG_LINES, errors_in, log_lines, progress_of, run_child
from pytest_gpuperf.context.repository import commit_of
from pytest_gpuperf.context.submodules import empty_submodules
from pytest_gpuperf.context.worker import Worker
from pytest_gpuperf.context.worktree import described, repository_of, resolve, working_trees, worktree_of
from pytest_gpuperf.model.evidence import Key, StaticRecord, TimeRecord
from pytest_gpuperf.model.result import unpacked
from pytest_gpuperf.model.revision import REVISION_FILE, REVISIONS_FOLDER, Revision, RevisionFound, UntimedWork
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.read_options import from_root
from pytest_gpuperf.session.revision_side import FOUND_FILE

LIMIT_S = 4 * 3600.0
"""Bound of the process that runs the revision's tests, which compiles all its kernels: it is there for hangs alone."""
KEPT_S = 24 * 3600.0
"""How long the evidence of a revision stays after its run: ``gpuperf explain`` reads it."""


def begin(config: pytest.Config, options: Options) -> Options:
    """Run the revision's tests and put what they run on record in a folder of its own: the options that name it.

    Raises ``pytest.UsageError`` for a revision that is none, and where its tests cannot run, or not by themselves.
    """
    try:
        top = repository_of(config.rootpath).top
        commit = resolve(config.rootpath, options.against)
        held = contextlib.ExitStack()
        config.add_cleanup(held.close)
        tree = held.enter_context(worktree_of(config.rootpath, commit))
        name = described(top, commit)
        others = tuple(one for one in working_trees(top) if one != tree)
    except RevisionError as problem:
        raise pytest.UsageError(f"--gpuperf-against={options.against}: {problem}") from None
    folder = _new_folder()
    archs = Worker(config, options).targets
    task = RevisionTask(folder=folder, top=top, others=others, tree=tree, named=_named(config))
    progress_of(config)(f"running the tests of {name}")
    found = _run(config, options, task, archs)
    if found.leaks:
        lines = "\n".join(f"  {line}" for line in found.leaks[:LOG_LINES])
        raise pytest.UsageError(
            f"--gpuperf-against={options.against}: the tests of {name} ran code that is not theirs, so nothing would "
            f"be compared:\n{lines}"
        )
    BaselineStore(folder).write(_update(found))
    root = tree / config.rootpath.resolve().relative_to(top)
    submodules = {os.path.relpath(tree / path, root): _WITHOUT_IT.format(path) for path in empty_submodules(tree)}
    tolerances = {
        str(work.key): work.tolerance for test in found.tests for work in test.workloads if work.tolerance is not None
    }
    untimed = {
        str(work.key): UntimedWork(identity=work.identity, cache=work.cache)
        for test in found.tests
        for work in test.workloads
        if work.identity is not None and work.cache is not None
    }
    revision = Revision(
        tolerances=tolerances,
        untimed=untimed,
        commit=commit,
        name=name,
        archs=archs,
        lacking={**found.lacking, **submodules},
        collected=found.collected,
        root=root,
        by_name=bool(task.named or config.getoption("keyword") or config.getoption("markexpr")),
        modules=found.modules,
        top=top,
        others=others,
        tree=tree,
    )
    write_whole(folder / REVISION_FILE, msgspec.json.encode(revision, enc_hook=str))
    return Options(**{**vars(options), "baselines": folder})


_WITHOUT_IT = (
    "it lies in the submodule {0}, whose commit of then this clone does not have (git submodule update --init {0}, and "
    "git -C {0} fetch)"
)


def _named(config: pytest.Config) -> tuple[str, ...]:
    """Tests that the run was given by name, relative to pytest's root, but those of files that it was given whole."""
    given = [str(one).partition("::") for one in config.getoption("file_or_dir") or ()]
    whole = [Path(from_root(config, path)) for path, mark, _ in given if not mark]
    named = [(from_root(config, path), test) for path, mark, test in given if mark]
    return tuple(f"{path}::{test}" for path, test in named if not any(map(Path(path).is_relative_to, whole)))


def _new_folder() -> Path:
    """For the evidence of one run; those of runs long ago are removed."""
    place = default_folder() / REVISIONS_FOLDER
    try:
        make_private(default_folder())
        place.mkdir(parents=True, exist_ok=True)
        for old in place.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another run has just removed it
                if time.time() - old.stat().st_mtime > KEPT_S:
                    shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=place))
    except OSError as problem:
        raise pytest.UsageError(
            f"--gpuperf-against: nothing can be kept in {place} ({problem.strerror or problem}): let GPUPERF_CACHE_DIR "
            "name a folder that can be written"
        ) from None


def _run(config: pytest.Config, options: Options, task: RevisionTask, archs: Sequence[str]) -> RevisionFound:
    log = task.folder / "log"
    command = revision_command(config, task, task.folder, options.against_python, archs)
    if command is None:
        return RevisionFound(tests=(), lacking={}, failed=frozenset(), device=None, leaks=(), modules=0)
    start = task.tree / os.path.relpath(config.invocation_params.dir.resolve(), task.top)
    try:
        status = run_child(command, start if start.is_dir() else task.tree, log, LIMIT_S)
    except OSError as problem:
        raise pytest.UsageError(f"--gpuperf-against: {command[0]} cannot be started ({problem})") from None
    left = task.folder / FOUND_FILE
    if left.exists():
        return msgspec.json.decode(left.read_bytes(), type=RevisionFound)
    lines = log_lines(log)
    why = next(iter(errors_in(lines)), f"pytest exit status {status}" if status is not None else "it hung")
    said = "\n".join(f"  {line}" for line in lines[-LOG_LINES:])
    raise pytest.UsageError(
        f"--gpuperf-against={options.against}: its tests did not come to an end ({why}). The last lines of their run:\n"
        f"{said}"
    )


def _update(found: RevisionFound) -> Update:
    """What the revision runs, as an update would record it; its single round says about how long that takes."""
    cubins = unpacked(found.tests)
    static: dict[tuple[str, str, Key], StaticRecord] = {}
    times: dict[tuple[str, Key], TimeRecord] = {}
    for test in found.tests:
        for work in test.workloads:
            for arch, record in work.static.items():
                cubin = record.cubin if record.cubin in cubins else ""
                static[arch, work.toolchain, work.key] = msgspec.structs.replace(record, cubin=cubin)
            if work.time is not None and found.device is not None and work.key.node_id not in found.failed:
                cubin = work.time.cubin if work.time.cubin in cubins else ""
                times[found.device.slug, work.key] = msgspec.structs.replace(work.time, cubin=cubin, beside=work.beside)
    sessions = {test.session.id: test.session for test in found.tests if test.session is not None}
    return Update(static=static, time=times, sessions=tuple(sessions.values()), cubins=list(cubins.values()))


def ran_foreign_code(config: pytest.Config) -> str:
    """Why this side's tests ran code that is not theirs, in this process or in workers; empty if they did not."""
    found = config.stash[stash.FINDING].found
    if found is None or not found.foreign:
        return ""
    top = repository_of(config.rootpath).top
    return f"these tests ran code that is not of {top}, so nothing was compared: {'; '.join(found.foreign)}"


def with_itself(config: pytest.Config, revision: Revision) -> str:
    """What to say where the revision is what is checked out, and nothing of it was changed; empty where it is not."""
    here = commit_of(config.rootpath)
    if here.name != revision.commit or here.dirty:
        return ""
    return (
        f"{revision.name} is what is checked out here, and no tracked file is changed: this run compares it with "
        "itself, and would always be green. To do: name what came before it (HEAD^, merge-base:main on a branch)"
    )


def chosen_by_name(book: Book, revision: Revision) -> str:
    """What to say where tests of other names did not run there, and something is new; empty where it is not so."""
    if not revision.by_name or all(one.verdict is not Verdict.NEW for one in book.judgements):
        return ""
    return (
        "tests were chosen by name, so whether what is new was renamed is not known. To do: run the whole file, "
        "without -k, -m and names of tests"
    )


def reworded(revision: Revision, judgement: Judgement) -> Judgement:
    """A judgement in the words of a revision; NEW is NOT-COMPARABLE where the test failed there."""
    if judgement.verdict is Verdict.NEW:
        why = revision.why_lacking(judgement.key) or _left_out(revision, judgement.key.module)
        if not why:
            return msgspec.structs.replace(judgement, reason=f"it is not in {revision.name}")
        reason = f"{revision.name} has nothing to compare with: {why}"
        return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    return judgement


def _left_out(revision: Revision, module: str) -> str:
    """Why there is nothing of a test file that the revision has; empty if it was collected, or is not there."""
    if module in revision.collected or not (revision.root / module).is_file():
        return ""
    return "its file is there, and its own settings or conftests leave it out"
