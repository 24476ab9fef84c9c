"""``gpuperf bisect``: which commit made a test's kernels slower, by runs against the good end.

Each commit is checked out in a worktree of its own, and its test compared with the good end by
``pytest --gpuperf --gpuperf-against``: by paired times, or without a GPU by machine code.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, NoReturn

import pytest

from pytest_gpuperf.baselines.baseline_errors import quoted
from pytest_gpuperf.baselines.git_objects import GitFolder, RevisionError, run_git
from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.formatting import numbered, ratio
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.process.children import RunningChild, answer_signals, errors_in, log_lines
from pytest_gpuperf.report.document import read_report
from pytest_gpuperf.report.message import workload_lines
from pytest_gpuperf.revision.imports import BOOTSTRAP, bootstrap_arguments
from pytest_gpuperf.revision.worktree import described, repository_of, working_trees, worktree_of

Write = Callable[[str], object]
Answer = Literal["good", "bad", "undecided"]
COMPARED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""Exit statuses of a run that may have compared something; the last is that of ``--sw`` after a red test."""
GOOD = frozenset({Verdict.UNCHANGED, Verdict.SAME, Verdict.FASTER, Verdict.BETTER})
LIMIT_S, GRACE_S = 24 * 3600.0, 10.0
"""Bound of the run of one commit, for hangs alone; and of one that was asked to end."""
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
    give_back = answer_signals(_exit, signal.SIGINT, signal.SIGTERM)
    try:
        return _search(parsed.node_id, parsed.good, parsed.bad, Path.cwd(), write)
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
    trials: dict[str, Trial] = {}

    def ask(commit: str) -> Answer:
        began, wanted = time.perf_counter(), trials[last].red if last in trials else frozenset()
        trial = trials[commit] = _tried(node_id, first, commit, start, wanted)
        write(f"  {commit[:12]}  {trial.answer:9}  {trial.why}  {time.perf_counter() - began:.1f} s\n")
        return trial.answer

    write(f"{numbered(len(commits) - 1, 'commit')} from {described(start, first)} to {described(start, last)}\n")
    if ask(first) != "good":
        raise GpuperfError(f"the good commit {first} is not good: {trials[first].why}")
    if (end := ask(last)) != "bad":
        problem = "is not slower than the good one" if end == "good" else "cannot be judged against the good one"
        raise GpuperfError(f"the bad commit {last} {problem}: {trials[last].why}")
    found = search(commits, ask)
    if found.between:
        suspects = [*found.between, found.bad]
        write(f"\nundecided, one of {len(suspects)} commits after {found.good[:12]}:\n")
        write("".join(f"  {described(start, one)}: {trials[one].why}\n" for one in suspects))
    else:
        write(f"\n{described(start, found.bad)} made it slower\n")
    write("".join(f"{line}\n" for line in (*trials[found.bad].lines, f"against {described(start, first)}")))
    return 1 if found.between else 0


def _below_top(node_id: str, start: Path) -> str:
    """The node id as it reads from the repository's top, so that it means each commit's own file.

    A relative path is one that ``start`` sees, else one that a folder above it sees, as where a summary names a test
    from pytest's root.  Raises ``RevisionError`` for a file outside of the repository.
    """
    name, mark, test = node_id.partition("::")
    top, here = repository_of(start).top, start.resolve()
    places = (one for one in (here, *here.parents) if one.is_relative_to(top) and (one / name).exists())
    path = (next(places, here) / name).resolve()
    if not path.is_relative_to(top):
        raise RevisionError(f"{path} lies outside of the repository {top}: name a test file of the repository")
    return f"{path.relative_to(top).as_posix()}{mark}{test}"


def _between(start: Path, first: str, last: str) -> list[str]:
    """The commits from the good end to the bad one, along first parents, both included."""
    if first == last or run_git(start, "merge-base", "--is-ancestor", first, last).returncode:
        raise GpuperfError(
            f"the good commit {first[:12]} is no ancestor of the bad commit {last[:12]}. To do: pass an ancestor with "
            f"--good; git merge-base {first[:12]} {last[:12]} prints one"
        )
    listed = run_git(start, "rev-list", "--first-parent", "--reverse", f"{first}..{last}")
    return [first, *listed.stdout.decode("ascii", "replace").split()]


# --- the search ------------------------------------------------------------------------------------

# A commit that cannot be judged is passed over, as ``git bisect skip`` does.  A commit is named only if it is slower
# and the one before it is not: with others between them that could not be judged, all of these are named.


class Found(NamedTuple):
    """The result of a search."""

    good: str
    """The last commit that is known not to be slower."""
    between: tuple[str, ...]
    """Commits between the two that could not be judged: any of them, or ``bad``, may be the one."""
    bad: str
    """The first that is known to be slower."""


def search(commits: Sequence[str], ask: Callable[[str], Answer]) -> Found:
    """The first slower of ``commits``, oldest first, of which the first is known to be good and the last to be bad.

    ``ask`` gives the verdict on a commit against the good end.
    """
    low, high, passed_over = 0, len(commits) - 1, set[int]()
    while undecided := [one for one in range(low + 1, high) if one not in passed_over]:
        middle = min(undecided, key=lambda one: abs(2 * one - low - high))
        answer = ask(commits[middle])
        if answer == "good":
            low = middle
        elif answer == "bad":
            high = middle
        else:
            passed_over.add(middle)
    return Found(commits[low], tuple(commits[low + 1 : high]), commits[high])


# --- trials --------------------------------------------------------------------------------------


class Trial(NamedTuple):
    """The result of one commit against the good one."""

    answer: Answer
    why: str
    """In a few words: a verdict, a ratio, an error."""
    lines: tuple[str, ...] = ()
    """The verdicts that are red, in the words of a failing test."""
    red: frozenset[Key] = frozenset()
    """The workloads that are slower."""


def _tried(node_id: str, good: str, commit: str, start: Path, wanted: Collection[Key]) -> Trial:
    """Run the test at a commit against the good end."""
    name, mark, test = node_id.partition("::")
    with TemporaryDirectory(prefix="gpuperf-bisect-") as scratch, worktree_of(start, commit) as tree:
        others = [one for one in working_trees(start) if one != tree]
        here = tree / os.path.relpath(start.resolve(), repository_of(start).top)
        here = here if here.is_dir() else tree
        file, log = Path(scratch) / "report.json", Path(scratch) / "log"
        command = [
            sys.executable, "-c", BOOTSTRAP, *bootstrap_arguments(others, tree, as_module=True),
            "-o", f"cache_dir={Path(scratch) / 'cache'}", "--last-failed-no-failures=all", "--color=no", "--gpuperf",
            f"--gpuperf-against={good}", f"--gpuperf-report={file}", "--gpuperf-open=fail",
            f"{Path(os.path.relpath(tree / name, here)).as_posix()}{mark}{test}",
        ]  # fmt: skip
        child = RunningChild(command, here, log, os.environ)
        try:
            status = child.waited(LIMIT_S)
        finally:  # the run ends with this process, whatever ends that
            child.ask_to_end()
            child.end(GRACE_S)
        lines = log_lines(log)
        try:
            report = read_report(file)
        except GpuperfError:  # it left none
            report = None
    error = next(iter((*errors_in(lines), *_refusals(lines))), "it hung" if status is None else f"exit status {status}")
    if report is None or status not in COMPARED:
        return Trial("undecided", error)
    return trial_of(report.tests, error if status else "", wanted)


def _refusals(lines: Iterable[str]) -> Iterator[str]:
    """Why pytest refused to run, if it says so: ``unrecognized arguments: --fast`` follows its usage."""
    for line in lines:
        _, mark, refused = line.partition(": error: ")
        if mark or (line.startswith("ERROR") and not line.startswith("ERROR: usage: ")):
            yield refused or line


def trial_of(tests: Sequence[TestEvidence], failure: str, wanted: Collection[Key] = ()) -> Trial:
    """The result by the evidence of a run against the good commit; ``failure`` is the failure of a test, if one failed.

    ``wanted`` are the workloads whose loss is sought, by default all: others may be as fast as before at the end.
    """
    works = [work for test in tests for work in test.workloads if work.judgements]
    sought = [work for work in works if not wanted or work.key in wanted]
    red = {work.key: [one for one in work.judgements if one.verdict.is_regression] for work in works}
    if slower := [work for work in sought if red[work.key]]:
        every = [one for work in slower for one in red[work.key]]
        worst = next((one for one in every if one.kind == "time"), every[0])
        lines = [line for work in slower for line in workload_lines(red[work.key], work.advice)]
        return Trial("bad", _summary(worst), tuple(lines), frozenset(work.key for work in slower))
    judged = [(work, one) for work in sought for one in work.judgements]
    good = [one for _, one in judged if one.verdict in GOOD]
    new = {Verdict.NEW, Verdict.UNCHANGED} if good else set[Verdict]()  # or equal code, which the good end did not time
    undecided = [one for work, one in judged if one.verdict not in GOOD and {j.verdict for j in work.judgements} - new]
    if undecided:
        reason = quoted(undecided[0].reason, MOST_REASON)
        return Trial("undecided", f"{_summary(undecided[0])}{f' ({reason})' if reason else ''}")
    if not good or (failure and not any(red.values())):
        return Trial("undecided", failure or "nothing was judged")
    return Trial("good", _summary(good[0]))


def _summary(judgement: Judgement) -> str:
    figures = ratio(judgement.time) if judgement.time is not None else ""
    return f"{judgement.verdict.value} {figures} on {judgement.target}".replace("  ", " ")
