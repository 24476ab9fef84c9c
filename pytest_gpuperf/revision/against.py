"""Comparing with another revision: what its tests run takes the place of the baselines.

``revision.server`` is what its process does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key, StaticRecord
from pytest_gpuperf.model.result import unpacked
from pytest_gpuperf.model.task import EVIDENCE, REVISION_FILE, Revision, RevisionFound, UntimedWork
from pytest_gpuperf.model.time_record import TimeRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.options import Options
from pytest_gpuperf.process.children import progress_of
from pytest_gpuperf.process.repository import commit_of
from pytest_gpuperf.read_options import from_root
from pytest_gpuperf.revision.process import RevisionProcess, keep_running, places_there
from pytest_gpuperf.revision.worktree import check_out
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.process_opponent import OtherSideLost

NOTHING = RevisionFound(tests=(), lacking={}, failed=frozenset(), device=None)


def begin(config: pytest.Config, options: Options) -> Options:
    """Run the revision's tests and put what they run on record beside its worktree: the options that name the folder.

    Raises ``pytest.UsageError`` for a revision that is none, and where its tests cannot run.
    """
    worker = Run(config, options)
    try:
        revision = check_out(config, options.against, worker.targets)
        progress_of(config)(f"running the tests of {revision.name}")
        found = _evidence(config, worker, revision)
    except (RevisionError, OtherSideLost) as problem:
        raise pytest.UsageError(f"--gpuperf-against={options.against}: {problem}") from None
    lacking = found.lacking
    if found.foreign:  # nothing that it ran is known to be its own
        why = f"it used a file that is not its own: {found.foreign[0]}"
        lacking, found = dict.fromkeys(found.collected, why), msgspec.structs.replace(found, tests=())
    folder = revision.tree.with_suffix(EVIDENCE)  # this process's own, as the worktree is
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    BaselineStore(folder).write(_update(found))
    untimed = {
        str(work.key): UntimedWork(identity=work.identity, cache=work.cache)
        for test in found.tests
        for work in test.workloads
        if work.identity is not None and work.cache is not None
    }
    revision = msgspec.structs.replace(revision, lacking=lacking, collected=found.collected, untimed=untimed)
    write_whole(folder / REVISION_FILE, msgspec.json.encode(revision, enc_hook=str))
    return Options(**{**vars(options), "baselines": folder})


def _evidence(config: pytest.Config, worker: Run, revision: Revision) -> RevisionFound:
    """What the revision's tests run, by a process that goes on for the callables of this one.

    A controller of pytest-xdist ends it: each worker starts its own at its first callable.
    Raises ``OtherSideLost`` with the last lines of its output.
    """
    if places_there(config, revision) is None:
        return NOTHING
    alone = not config.pluginmanager.hasplugin("dsession")
    held = alone and worker.has_gpu  # then this process holds the GPU for both
    with worker.device.lock() if held else contextlib.nullcontext():
        environ = worker.child_environment() if held else os.environ
        process = RevisionProcess(config, revision, environ, _named(config), evidence=True)
        try:
            found = process.evidence()
        except BaseException as problem:
            why = process.explained(problem) if isinstance(problem, OtherSideLost) else ""
            last = process.last_lines()
            process.close(grace_s=0.0)
            if not why:
                raise
            raise OtherSideLost(
                f"its tests did not come to an end: {why}. The last lines of their run:{last}"
            ) from None
    if alone:
        keep_running(config, process)
    else:
        process.close()
    return found


def _named(config: pytest.Config) -> tuple[str, ...]:
    """Tests that the run was given by name, relative to pytest's root, but those of files that it was given whole."""
    given = [str(one).partition("::") for one in config.getoption("file_or_dir") or ()]
    whole = [Path(from_root(config, path)) for path, mark, _ in given if not mark]
    named = [(from_root(config, path), test) for path, mark, test in given if mark]
    return tuple(f"{path}::{test}" for path, test in named if not any(map(Path(path).is_relative_to, whole)))


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
                times[found.device.slug, work.key] = msgspec.structs.replace(
                    work.time, cubin=cubin, beside=work.beside, sessions=(test.session,) if test.session else ()
                )
    return Update(static=static, time=times, cubins=list(cubins.values()))


# --- what a run says of the revision ---------------------------------------------------------------


def with_itself(config: pytest.Config, revision: Revision) -> str:
    """What to say where the revision is what is checked out, and nothing of it was changed; empty where it is not."""
    here = commit_of(config.rootpath)
    if here.name != revision.commit or here.dirty:
        return ""
    return (
        f"{revision.name} is what is checked out here, and no tracked file is changed: this run compares it with "
        "itself, and would always be green. To do: name what came before it (HEAD^, merge-base:main on a branch)"
    )


def reworded(revision: Revision, judgement: Judgement, foreign: str) -> Judgement:
    """A judgement in the words of a revision; NEW is NOT-COMPARABLE where the test failed there.

    So is every judgement of a process that used a ``foreign`` file, which is one of the other side.
    """
    why = f"this run used a file that is not its own: {foreign}" if foreign else ""
    if not why and judgement.verdict is not Verdict.NEW:
        return judgement
    why = why or revision.why_lacking(judgement.key) or _left_out(revision, judgement.key.module)
    if not why:
        return msgspec.structs.replace(judgement, reason=f"it is not in {revision.name}")
    reason = why if foreign else f"{revision.name} has nothing to compare with: {why}"
    return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason)


def _left_out(revision: Revision, module: str) -> str:
    """Why there is nothing of a test file that the revision has; empty if it was collected, or is not there."""
    if module in revision.collected or not (revision.root / module).is_file():
        return ""
    return "its file is there, and its own settings or conftests leave it out"
