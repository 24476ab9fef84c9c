"""``gpuperf bisect``: which commit made a test's kernels slower, by runs against the good end.

Each commit is checked out in a worktree of its own, and its test compared with the good end by
``pytest --gpuperf --gpuperf-against``: first without a GPU, for its machine code, then, if nothing equal was judged
before and there is a GPU, by paired times.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError, run_git
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.cli.baseline_folder import folder_of
from pytest_gpuperf.cli.bisect_trial import Trial, trial_of
from pytest_gpuperf.cli.report_command import read_report
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import numbered
from pytest_gpuperf.judge.bisection import Answer, NothingToFind, search
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.task import FOLDER_LAST
from pytest_gpuperf.process.children import RunningChild, errors_in, log_lines
from pytest_gpuperf.process.signals import command_in_order
from pytest_gpuperf.revision.imports import BOOTSTRAP, bootstrap_arguments
from pytest_gpuperf.revision.worktree import described, repository_of, working_trees, worktree_of

Write = Callable[[str], object]
STEP_STATUS: Mapping[Answer, int] = {"good": 0, "bad": 1, "undecided": 125}
"""As ``git bisect run`` reads it."""

COMPARED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""Exit statuses of a run that may have compared something; the last is that of ``--sw`` after a red test."""

LIMIT_S = 24 * 3600.0
"""Bound of the run of one commit: it is there for hangs alone."""
PATIENCE_S = 10.0
"""For a run that was asked to end."""


_OF_HEAD = re.compile(r"(HEAD|@)(?=[~^@{:]|$)")
"""How revisions begin that say where they are from what is checked out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node_id", metavar="NODEID", help="a test, file or folder, as pytest takes it")
    parser.add_argument("--good", metavar="REF", help="a commit that is not slower (default: where it was recorded)")
    parser.add_argument("--bad", metavar="REF", default="HEAD", help="a commit that is slower (default: HEAD)")
    parser.add_argument(
        "--step", action="store_true",
        help="judge the working tree alone against --good, for git bisect run: 0 good, 1 bad, 125 skip, 128 stop",
    )  # fmt: skip


def execute(parsed: argparse.Namespace, write: Write) -> int:
    """Exit status 0 if the commit is found, 1 if others may be it; of a step that for git.  Raises ``GpuperfError``.

    What takes long to come is printed line by line.
    """

    def at_once(text: str) -> None:
        write(text)
        sys.stdout.flush()

    with command_in_order():
        if parsed.step:
            return _step(parsed.node_id, parsed.good, Path.cwd(), at_once)
        return _search(parsed.node_id, parsed.good, parsed.bad, Path.cwd(), at_once)


def _search(node_id: str, good: str | None, bad: str, start: Path, write: Write) -> int:
    """Look for the commit and say which it is."""
    top, git = repository_of(start).top, GitFolder(start)
    node_id = _below_top(node_id, start, top)
    last, first = git.commit(bad), recorded_commit(node_id, start, top) if good is None else git.commit(good)
    commits = _between(start, first, last)
    write(f"{numbered(len(commits) - 1, 'commit')} from {described(start, first)} to {described(start, last)}\n")
    trials = _Trials(node_id, first, start, write)
    if trials.code(first) is None:
        raise NothingToFind(f"the good end {first} comes to nothing that can be compared: {trials.why(first)}")
    if not trials.is_good(first):
        raise NothingToFind(f"the good end {first} is not good: {trials.why(first)}")
    try:
        found = search(commits, trials.code, trials.answer)
    except NothingToFind as problem:
        raise NothingToFind(f"{problem}: {trials.why(last)}") from None
    suspects = [*found.between, found.bad]
    if found.culprit is None:
        write(f"\nnot told apart, one of {len(suspects)} commits after {found.good[:12]}:\n")
        write("".join(f"  {described(start, one)}: {trials.why(one)}\n" for one in suspects))
    else:
        write(f"\n{described(start, found.bad)} made it slower\n")
    words = "".join(f"{line}\n" for line in trials.words(found.bad))
    write(f"{words}against {described(start, first)}; {numbered(found.verdicts, 'verdict')}\n")
    return 0 if found.culprit is not None else 1


def _step(node_id: str, good: str | None, start: Path, write: Write) -> int:
    """Judge the working tree against the good end."""
    if good is None:
        raise GpuperfError("--step needs --good REF, what the working tree is compared with")
    top = repository_of(start).top
    if _OF_HEAD.match(good) and _is_bisecting(top):
        raise GpuperfError(
            f"--good {good} is another commit at every step, as git bisect moves HEAD: name it by its id, or by a "
            "branch or a tag"
        )
    here = _seen_from(_below_top(node_id, start, top), start.resolve(), top)
    trial = _tried([sys.executable, "-c", FOLDER_LAST], here, GitFolder(top).commit(good), start, {})
    write(f"{trial.answer}: {trial.why}\n")
    return STEP_STATUS[trial.answer]


def _below_top(node_id: str, start: Path, top: Path) -> str:
    """The node id as it reads from the repository's ``top``, so that it means each commit's own file.

    A relative path is one that ``start`` sees, else one that a folder above it sees, as where a summary names a test
    from pytest's root.  Raises ``RevisionError`` for a file outside of the repository.
    """
    name, mark, test = node_id.partition("::")
    here = start.resolve()
    places = (one for one in (here, *here.parents) if one.is_relative_to(top) and (one / name).exists())
    path = Path(os.path.normpath(next(places, here) / name))
    path = path if path.is_relative_to(top) else path.resolve()
    if not path.is_relative_to(top):
        raise RevisionError(f"{path} lies outside of the repository {top}: name a test that it has at every commit")
    return f"{path.relative_to(top).as_posix()}{mark}{test}"


def _seen_from(node_id: str, folder: Path, top: Path) -> str:
    """The node id that reads so from ``top``, as a folder below it sees it."""
    name, mark, test = node_id.partition("::")
    return f"{Path(os.path.relpath(top / name, folder)).as_posix()}{mark}{test}"


def _is_bisecting(top: Path) -> bool:
    found = run_git(top, "rev-parse", "--path-format=absolute", "--git-path", "BISECT_START")
    return Path(os.fsdecode(found.stdout).rstrip("\n")).is_file()


def recorded_commit(node_id: str, start: Path, top: Path) -> str:
    """The commit at which the test's times, or those of its module, were recorded last.  Raises ``GpuperfError``."""
    try:
        folder = folder_of(None, start)
        store = BaselineStore(folder)
        module = os.path.relpath(top / node_id.partition("::")[0], folder.parent.resolve())
        tests = [store.time_tests(device, Path(module).as_posix()) for device in store.devices()]
        sessions = [
            one for of in tests for works in of.values() for record in works.values() for one in record.sessions
        ]
    except GpuperfError:
        sessions = []
    known = [one for one in sessions if one.commit and not one.dirty]
    if not known:
        raise GpuperfError("no record says at which commit the test was still good: name it with --good REF")
    return GitFolder(start).commit(max(known, key=lambda one: one.date).commit)


def _between(start: Path, first: str, last: str) -> list[str]:
    """The commits from the good end to the bad one, along first parents, both included."""
    if run_git(start, "merge-base", "--is-ancestor", first, last).returncode:
        raise GpuperfError(
            f"the good end {first[:12]} is no ancestor of the bad end {last[:12]}: name the commit that both come from "
            f"(git merge-base {first[:12]} {last[:12]}) with --good"
        )
    if first == last:
        raise GpuperfError(f"both ends are {first[:12]}: name an older good one with --good, or another bad one")
    listed = run_git(start, "rev-list", "--first-parent", "--reverse", f"{first}..{last}")
    return [first, *listed.stdout.decode("ascii", "replace").split()]


class _Trials:
    """Commits that were tried: their code without a GPU, and their times only if these are asked for."""

    def __init__(self, node_id: str, good: str, start: Path, write: Write) -> None:
        self._node_id, self._good, self._start, self._write = node_id, good, start, write
        self._static: dict[str, Trial] = {}
        self._final: dict[str, Trial] = {}
        self._red = frozenset[Key]()
        """Workloads that are slower at the bad end, once that is known: the loss of others is not what is sought."""
        self._gpu: bool | None = None
        """Whether there is one; None until a commit is judged."""

    def code(self, commit: str) -> Hashable | None:
        if commit not in self._static:
            self._static[commit] = self._try(commit, {"CUDA_VISIBLE_DEVICES": ""})
        return self._static[commit].code

    def answer(self, commit: str) -> Answer:
        """Without a GPU what the machine code says, with one what times say."""
        if self._gpu is not False:
            self._final[commit] = self._try(commit, {})
            self._gpu = self._gpu or self._final[commit].timed
        self._red = self._red or self._last(commit).red
        return self._last(commit).answer

    def is_good(self, commit: str) -> bool:
        """Whether its own trial says so: without a GPU or, where the test cannot do without, with one."""
        self.code(commit)
        return self._static[commit].answer == "good" or self.answer(commit) == "good"

    def why(self, commit: str) -> str:
        return self._last(commit).why if commit in self._static else "not looked at"

    def words(self, commit: str) -> tuple[str, ...]:
        return self._last(commit).words

    def _last(self, commit: str) -> Trial:
        final = self._final.get(commit)
        return final if final is not None and (self._gpu or commit not in self._static) else self._static[commit]

    def _try(self, commit: str, environ: Mapping[str, str]) -> Trial:
        began = time.perf_counter()
        top = repository_of(self._start).top
        with worktree_of(self._start, commit) as tree:
            others = [one for one in working_trees(self._start) if one != tree]
            start = tree / os.path.relpath(self._start.resolve(), top)
            start = start if start.is_dir() else tree
            arguments = bootstrap_arguments(others, tree, as_module=True)
            command = [sys.executable, "-c", BOOTSTRAP, *arguments]
            trial = _tried(command, _seen_from(self._node_id, start, tree), self._good, start, environ, self._red)
        if self._gpu and not environ and trial.answer == "good" and not trial.timed:  # as others are, by their times
            trial = dataclasses.replace(trial, answer="undecided", why=f"{trial.why}, and no time was taken")
        self._write(f"  {commit[:12]}  {trial.answer:9}  {trial.why}  {time.perf_counter() - began:.1f} s\n")
        return trial


def _tried(
    command: Sequence[str], node_id: str, good: str, start: Path, environ: Mapping[str, str],
    looked_for: Collection[Key] = (),
) -> Trial:  # fmt: skip
    """Run one test in a folder against the good end."""
    with tempfile.TemporaryDirectory(prefix="gpuperf-bisect-") as name:
        file, log = Path(name) / "report.json", Path(name) / "log"
        flags = [
            "-o", f"cache_dir={Path(name) / 'cache'}", "--last-failed-no-failures=all", "--color=no", "--gpuperf",
            f"--gpuperf-against={good}", f"--gpuperf-report={file}", "--gpuperf-open=fail",
        ]  # fmt: skip
        status = _run([*command, *flags, node_id], start, log, {**os.environ, **environ})
        lines = log_lines(log)
        try:
            report = read_report(file)
        except GpuperfError:  # it left none
            report = None
    error = next(iter((*errors_in(lines), *_refusals(lines))), "it hung" if status is None else f"exit status {status}")
    if report is None or status not in COMPARED:
        return Trial("undecided", None, error)
    return trial_of(report.tests, error if status else "", looked_for)


def _run(command: Sequence[str], start: Path, log: Path, environ: Mapping[str, str]) -> int | None:
    """Exit status of a run that is ended with this process, whatever ends that; None if it hung."""
    child = RunningChild(command, start, log, environ)
    try:
        return child.waited(LIMIT_S)
    finally:
        child.ask_to_end()
        child.end(PATIENCE_S)


def _refusals(lines: Iterable[str]) -> Iterator[str]:
    """What pytest refuses to run for, where it says so: ``unrecognized arguments: --fast`` follows its usage."""
    for line in lines:
        _, mark, refused = line.partition(": error: ")
        if mark or (line.startswith("ERROR") and not line.startswith("ERROR: usage: ")):
            yield refused or line
