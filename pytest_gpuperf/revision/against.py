"""Comparison with another revision: its process runs each test too, and its evidence replaces the baselines.

Both processes run side by side until a test here uses the GPU or is judged.  Then this one waits for the other, which
has no work in flight from there on.  ``revision.server`` is the code of the other process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from pytest_gpuperf import stash
from pytest_gpuperf.atomic_write import write_whole
from pytest_gpuperf.baselines.git_objects import RevisionError
from pytest_gpuperf.formatting import first_of, numbered
from pytest_gpuperf.model.evidence import Key, is_below
from pytest_gpuperf.model.task import REVISION_FILE, Revision
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.process.children import show_progress
from pytest_gpuperf.process.repository import commit_of
from pytest_gpuperf.results import TestsFound, may_measure
from pytest_gpuperf.revision.evidence import RevisionBaselines, update_of
from pytest_gpuperf.revision.process import ANSWER_S, RUNNING, NotPaired, lose, places_there, process_for
from pytest_gpuperf.revision.worktree import check_out
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing.process_reference import OtherSideLost, RunTest, TestEnded

MOST_NAMED = 12
"""Packages that differ between two environments."""


class Against:
    """A plugin of every process of such a run; that of pytest-xdist's controller only requests missing tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._known: set[str] = set()
        self._ended_early: set[str] = set()
        """Tests that the revision's process ended where they read a time: they may have more to run."""
        self._test = ""
        """Node id of the test that runs here, if it may measure something."""
        self._broken = ""
        """Why the revision's process did not collect its tests."""

    @property
    def _run(self) -> Run:
        return stash.run_of(self._config)

    @property
    def _revision(self) -> Revision:
        revision = self._run.revision
        assert revision is not None
        return revision

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Start the revision's process, which imports and collects meanwhile.  Raises ``pytest.UsageError``."""
        config = self._config
        if not self._is_worker:
            self._check_out()
        if not config.pluginmanager.hasplugin("dsession"):
            self._run.store = RevisionBaselines(self._run.options.baselines, self._learn_again)
            self._run.before_gpu = lambda: self.learn(self._test)
            with contextlib.suppress(NotPaired, OtherSideLost):  # its first test meets the same
                process_for(self._run, self._revision)

    def _check_out(self) -> None:
        """Let the options name a folder of this run for its evidence."""
        config, options = self._config, self._config.stash[stash.OPTIONS]
        try:
            revision = check_out(config, options.against, Run(config, options).targets)
        except RevisionError as problem:
            raise pytest.UsageError(f"{' '.join(options.against_flags)}: {problem}") from None
        places_there(config, revision)
        show_progress(config, f"comparing with {revision.name}")
        made = tempfile.TemporaryDirectory(prefix="gpuperf-", ignore_cleanup_errors=True)
        config.add_cleanup(made.cleanup)
        folder = Path(made.name)
        write_whole(folder / REVISION_FILE, msgspec.json.encode(revision, enc_hook=str))
        options = config.stash[stash.OPTIONS] = dataclasses.replace(options, baselines=folder)
        config.stash[stash.RUN] = Run(config, options, self._run.results)
        if options.against_env is not None:
            self._run.outcome.left_out += (differences(options.against_env),)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Wait until the process has collected.  Raises ``pytest.UsageError`` where it does not, but in a worker."""
        if self._config.pluginmanager.hasplugin("dsession"):
            return
        _ = self._run.has_gpu  # opens the GPU meanwhile
        try:
            there = process_for(self._run, self._revision).tests()
            (self._run.results.found or TestsFound()).there.update(there)
        except NotPaired:
            return
        except OtherSideLost as problem:
            why = lose(self._config, problem, log=True)
            self._broken = f"{' '.join(self._run.options.against_flags)}: its tests cannot run: {why}"
            if not self._is_worker:
                raise pytest.UsageError(self._broken) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if self._broken and self._test:
            pytest.fail(self._broken, pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        self._test = item.nodeid if may_measure(item) else ""
        if self._test and self._test not in self._known and not self._broken:
            with contextlib.suppress(NotPaired, OtherSideLost):  # who learns of it meets the same
                following = nextitem.nodeid if nextitem is not None else ""
                process_for(self._run, self._revision).ask(RunTest(node_id=self._test, following=following))
        ended = yield
        self.learn(self._test)
        return ended

    def learn(self, node_id: str) -> None:
        """Wait for the evidence of the revision's process on a test, and keep it."""
        if node_id and node_id not in self._known and not self._broken:
            self._known.add(node_id)
            self._learn(RunTest(node_id=node_id))

    def _learn_again(self, node_id: str) -> None:
        """Let a test that ended early run to its end, with times."""
        if node_id in self._ended_early:
            self._ended_early.remove(node_id)
            self._learn(RunTest(node_id=node_id, how="time"))

    def _learn(self, request: RunTest) -> None:
        node_id = request.node_id
        try:
            process = process_for(self._run, self._revision)
            if process.test != node_id or request.how == "time":
                process.ask(request)
            ended = process.ended()
        except NotPaired:
            return
        except OtherSideLost as problem:
            self._revision.lacking[node_id] = lose(self._config, problem)
        else:
            assert ended is not None
            self._take(node_id, ended)

    def _take(self, node_id: str, ended: TestEnded) -> None:
        run, revision = self._run, self._revision
        why = f"it used a file of the other side: {ended.foreign[0]}" if ended.foreign else ended.why
        if why:
            revision.lacking[node_id] = why
        if ended.evidence is None or ended.foreign:  # nothing that it ran is known to be its own
            return
        if ended.evidence.status == "checked only":
            self._ended_early.add(node_id)
        update = update_of(ended)
        if isinstance(run.store, RevisionBaselines):
            run.store.add(node_id, update)
        else:
            run.store.write(update)

    def learn_rest(self) -> set[str]:
        """Node ids of the revision's tests that are missing here, among the places that the run collected."""
        found, rest = self._run.results.found or TestsFound(), set[str]()
        for node_id in sorted(found.there - found.tests):
            module, _, test = node_id.partition("::")
            skipped = any(is_below(node_id, place) for place in found.skipped)
            if skipped or found.lacks(self._config, Key(module=module, test=test, workload="")):
                rest.add(node_id)
                self.learn(node_id)
        return rest

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        found = self._run.results.found
        is_complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if found is not None and is_complete and not self._is_worker:
            left = found.there - found.tests - self.learn_rest()
            of = numbered(len(found.there), "test")
            message = f"partial run: it left out {len(left)} of {of} that {self._revision.name} has"
            self._run.outcome.left_out += (message,) if left else ()
        if RUNNING in self._config.stash:
            self._config.stash[RUNNING].child.link.close()  # by which it ends meanwhile
        if isinstance(self._run.store, RevisionBaselines):  # for the controller of pytest-xdist
            self._run.store.save(self._test)


AGAINST: pytest.StashKey[Against] = pytest.StashKey()


def begin(config: pytest.Config) -> None:
    config.stash[AGAINST] = Against(config)
    config.pluginmanager.register(config.stash[AGAINST], "gpuperf-against")


# --- what a run says of the revision ---------------------------------------------------------------

VERSIONS = """\
import json, platform
from importlib.metadata import distributions
found = {one.metadata["Name"]: one.version for one in reversed([*distributions()])}  # the first of a name is imported
print(json.dumps({**found, "Python": platform.python_version()}))
"""


def differences(python: Path) -> str:
    """What another environment has in other versions than this one.  Raises ``pytest.UsageError``."""
    found = []
    for one in (str(python), sys.executable):
        try:
            done = subprocess.run([one, "-c", VERSIONS], capture_output=True, text=True, timeout=ANSWER_S, check=True)
            found.append(dict(json.loads(done.stdout)))
        except (OSError, ValueError, TypeError, subprocess.SubprocessError) as problem:
            said = str(getattr(problem, "stderr", None) or problem).strip()[-200:]
            raise pytest.UsageError(f"--gpuperf-against-env: {one} does not run as a Python: {said}") from None
    there, here = found
    other = [name for name in sorted({*there, *here}, key=str.lower) if there.get(name) != here.get(name)]
    listed = [f"{name} {there.get(name, 'none')} -> {here.get(name, 'none')}" for name in other]
    return f"environments: {first_of(listed, MOST_NAMED) or 'the same versions'}"


def with_itself(config: pytest.Config, revision: Revision) -> str:
    """A remark if the revision is checked out here without changes; else empty."""
    here = commit_of(config.rootpath)
    if here.name != revision.commit or here.dirty:
        return ""
    return (
        f"{revision.name} is checked out here, and no tracked file is changed: this run compares it with itself, so it "
        "is always green. To do: name an earlier revision (HEAD^, or merge-base:main on a branch)"
    )


def reworded(revision: Revision, judgement: Judgement, foreign: str) -> Judgement:
    """A judgement that names the revision; NEW is NOT-COMPARABLE where the test failed there.

    So is every judgement of a process that used a ``foreign`` file, which is one of the other side.
    """
    why = f"this run used a file of the other side: {foreign}" if foreign else ""
    if not why and judgement.verdict is not Verdict.NEW:
        return judgement
    why = why or revision.lacking.get(judgement.key.node_id, "")
    if not why:
        return msgspec.structs.replace(judgement, reason=f"it is not in {revision.name}")
    reason = why if foreign else f"{revision.name} has nothing to compare with: {why}"
    return msgspec.structs.replace(judgement, verdict=Verdict.NOT_COMPARABLE, reason=reason)
