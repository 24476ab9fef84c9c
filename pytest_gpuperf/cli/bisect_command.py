"""``gpuperf bisect``: which commit made a test's kernels slower, by runs against the good end.

Each commit is checked out in a worktree of its own, and its test compared with the good end by
``pytest --gpuperf --gpuperf-against``: first without a GPU, for its machine code, then, if nothing equal was judged
before and there is a GPU, by paired times.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_gpuperf.atomic_write import scratch_folder
from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError, run_git
from pytest_gpuperf.cli.report_command import read_report
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import numbered, ratio
from pytest_gpuperf.judge.bisection import Answer, NothingToFind, search
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.process.children import RunningChild, answer_signals, errors_in, log_lines
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.revision.imports import BOOTSTRAP, bootstrap_arguments
from pytest_gpuperf.revision.worktree import described, repository_of, working_trees, worktree_of

Write = Callable[[str], object]
COMPARED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""Exit statuses of a run that may have compared something; the last is that of ``--sw`` after a red test."""
GOOD = frozenset({Verdict.UNCHANGED, Verdict.SAME, Verdict.FASTER, Verdict.BETTER})
LIMIT_S = 24 * 3600.0
"""Bound of the run of one commit: it is there for hangs alone."""
PATIENCE_S = 10.0
"""For a run that was asked to end."""
MOST_REASON = 200
"""Characters of a reason that a line tells."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node_id", metavar="NODEID", help="a test, file or folder, as pytest takes it")
    parser.add_argument("--good", metavar="REF", required=True, help="a commit that is not slower")
    parser.add_argument("--bad", metavar="REF", default="HEAD", help="a commit that is slower (default: HEAD)")


def execute(parsed: argparse.Namespace, write: Write) -> int:
    """Look for the commit and say which it is, each line as soon as it is known.

    Returns the exit status: 0 if the commit is found, 1 if others may be it.  Raises ``GpuperfError``.
    """

    def at_once(text: str) -> None:
        write(text)
        sys.stdout.flush()

    give_back = answer_signals(_exit, signal.SIGINT, signal.SIGTERM)
    try:
        return _search(parsed.node_id, parsed.good, parsed.bad, Path.cwd(), at_once)
    finally:
        give_back()


def _exit(number: int, _frame: object) -> NoReturn:
    """End by the status of a shell, children and folders first; no second signal cuts that short."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _search(node_id: str, good: str, bad: str, start: Path, write: Write) -> int:
    node_id, git = _below_top(node_id, start), GitFolder(start)
    first, last = git.commit(good), git.commit(bad)
    commits = _between(start, first, last)
    trials = _Trials(node_id, first, start, write)
    write(f"{numbered(len(commits) - 1, 'commit')} from {described(start, first)} to {described(start, last)}\n")
    if trials.code(first) is None:
        raise NothingToFind(f"the good end {first} comes to nothing that can be compared: {trials.last(first).why}")
    if not trials.is_good(first):
        raise NothingToFind(f"the good end {first} is not good: {trials.last(first).why}")
    try:
        found = search(commits, trials.code, trials.answer)
    except NothingToFind as problem:
        raise NothingToFind(f"{problem}: {trials.last(last).why}") from None
    if found.culprit is None:
        suspects = [*found.between, found.bad]
        write(f"\nnot told apart, one of {len(suspects)} commits after {found.good[:12]}:\n")
        write("".join(f"  {described(start, one)}: {trials.last(one).why}\n" for one in suspects))
    else:
        write(f"\n{described(start, found.bad)} made it slower\n")
    words = "".join(f"{line}\n" for line in trials.last(found.bad).words)
    write(f"{words}against {described(start, first)}; {numbered(found.verdicts, 'verdict')}\n")
    return 0 if found.culprit is not None else 1


def _below_top(node_id: str, start: Path) -> str:
    """The node id as it reads from the repository's top, so that it means each commit's own file.

    A relative path is one that ``start`` sees, else one that a folder above it sees, as where a summary names a test
    from pytest's root.  Raises ``RevisionError`` for a file outside of the repository.
    """
    name, mark, test = node_id.partition("::")
    top, here = repository_of(start).top, start.resolve()
    places = (one for one in (here, *here.parents) if one.is_relative_to(top) and (one / name).exists())
    path = Path(os.path.normpath(next(places, here) / name))
    path = path if path.is_relative_to(top) else path.resolve()
    if not path.is_relative_to(top):
        raise RevisionError(f"{path} lies outside of the repository {top}: name a test that it has at every commit")
    return f"{path.relative_to(top).as_posix()}{mark}{test}"


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


# --- trials --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Trial:
    """What one commit came to against the good end."""

    answer: Answer
    code: Hashable | None
    """What its workloads run; None where the test did not come to any."""
    why: str
    """In a few words: a verdict, a ratio, an error."""
    words: tuple[str, ...] = ()
    """The verdicts that are red, in the words of a failing test."""
    timed: bool = False
    """A GPU took times for it."""
    red: frozenset[Key] = frozenset()
    """The workloads that are slower."""


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
        self._red = self._red or self.last(commit).red
        return self.last(commit).answer

    def is_good(self, commit: str) -> bool:
        """Whether its own trial says so: without a GPU or, where the test cannot do without, with one."""
        self.code(commit)
        return self._static[commit].answer == "good" or self.answer(commit) == "good"

    def last(self, commit: str) -> Trial:
        """That by times where there is a GPU."""
        final = self._final.get(commit)
        if final is not None and (self._gpu or commit not in self._static):
            return final
        return self._static.get(commit, Trial("undecided", None, "not looked at"))

    def _try(self, commit: str, environ: Mapping[str, str]) -> Trial:
        began = time.perf_counter()
        name, mark, test = self._node_id.partition("::")
        with worktree_of(self._start, commit) as tree:
            others = [one for one in working_trees(self._start) if one != tree]
            start = tree / os.path.relpath(self._start.resolve(), repository_of(self._start).top)
            start = start if start.is_dir() else tree
            command = [sys.executable, "-c", BOOTSTRAP, *bootstrap_arguments(others, tree, as_module=True)]
            node_id = f"{Path(os.path.relpath(tree / name, start)).as_posix()}{mark}{test}"
            trial = _tried(command, node_id, self._good, start, environ, self._red)
        self._write(f"  {commit[:12]}  {trial.answer:9}  {trial.why}  {time.perf_counter() - began:.1f} s\n")
        return trial


def _tried(
    command: Sequence[str], node_id: str, good: str, start: Path, environ: Mapping[str, str], wanted: Collection[Key]
) -> Trial:
    """Run one test in a folder against the good end."""
    with scratch_folder("gpuperf-bisect-") as name:
        file, log = Path(name) / "report.json", Path(name) / "log"
        flags = [
            "-o", f"cache_dir={Path(name) / 'cache'}", "--last-failed-no-failures=all", "--color=no", "--gpuperf",
            f"--gpuperf-against={good}", f"--gpuperf-report={file}", "--gpuperf-open=fail",
        ]  # fmt: skip
        child = RunningChild([*command, *flags, node_id], start, log, {**os.environ, **environ})
        try:
            status = child.waited(LIMIT_S)
        finally:  # the run ends with this process, whatever ends that
            child.ask_to_end()
            child.end(PATIENCE_S)
        lines = log_lines(log)
        try:
            report = read_report(file)
        except GpuperfError:  # it left none
            report = None
    error = next(iter((*errors_in(lines), *_refusals(lines))), "it hung" if status is None else f"exit status {status}")
    if report is None or status not in COMPARED:
        return Trial("undecided", None, error)
    return trial_of(report.tests, error if status else "", wanted)


def _refusals(lines: Iterable[str]) -> Iterator[str]:
    """What pytest refuses to run for, where it says so: ``unrecognized arguments: --fast`` follows its usage."""
    for line in lines:
        _, mark, refused = line.partition(": error: ")
        if mark or (line.startswith("ERROR") and not line.startswith("ERROR: usage: ")):
            yield refused or line


def trial_of(tests: Sequence[TestEvidence], failure: str, wanted: Collection[Key] = ()) -> Trial:
    """What the evidence of a run against the good end says; ``failure`` is what a test failed for, a verdict or not.

    ``wanted`` are the workloads whose loss is sought, by default all: that of others may have been taken back later.
    """
    works = [work for test in tests for work in test.workloads if work.judgements]
    code = tuple(sorted(map(_code, works))) if all(work.static for work in works) else object()
    timed = any(test.device is not None for test in tests)
    others_slower = any(one.verdict.is_regression for work in works for one in work.judgements)
    sought = [work for work in works if not wanted or work.key in wanted]
    judged = [(work, one) for work in sought for one in work.judgements]
    red = [(work, one) for work, one in judged if one.verdict.is_regression]
    if red:
        worst = next((one for _, one in red if one.kind == "time"), red[0][1])
        keys = frozenset(work.key for work, _ in red)
        lines = tuple(line for work in sought if work.key in keys for line in _words(work))
        return Trial("bad", code, _said(worst), lines, timed, keys)
    good = [one for _, one in judged if one.verdict in GOOD]
    open_ones = [one for work, one in judged if one.verdict not in GOOD and not (good and _is_added(work))]
    if open_ones:
        reason = quoted(open_ones[0].reason, MOST_REASON)
        return Trial("undecided", code, f"{_said(open_ones[0])}{f' ({reason})' if reason else ''}", timed=timed)
    if not good or (failure and not others_slower):
        return Trial("undecided", code if works else None, failure or "nothing was judged", timed=timed)
    return Trial("good", code, _said(good[0]), timed=timed)


def _is_added(work: WorkloadEvidence) -> bool:
    """The good end has nothing of it; or it is equal code, which the good end did not time."""
    return {one.verdict for one in work.judgements} <= {Verdict.NEW, Verdict.UNCHANGED}


def _code(work: WorkloadEvidence) -> tuple[str, str]:
    """A workload, and what it runs."""
    codes = ",".join(f"{arch}={record.profile.code_hash}" for arch, record in sorted(work.static.items()))
    launch = f"{work.identity.launch} {work.identity.arguments}" if work.identity is not None else ""
    return str(work.key), f"{codes} {launch}"


def _said(judgement: Judgement) -> str:
    figures = ratio(judgement.time) if judgement.time is not None else ""
    return f"{judgement.verdict.value} {figures} on {judgement.target}".replace("  ", " ")


def _words(work: WorkloadEvidence) -> list[str]:
    """Its red verdicts, in the words of a failing test."""
    return workload_lines([one for one in work.judgements if one.verdict.is_regression], work.advice)
