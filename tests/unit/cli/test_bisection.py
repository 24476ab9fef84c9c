"""The search for the commit that made it slower: few verdicts, and no innocent one named; what a trial comes to.

Runs of real kernels are in tests/plugin/test_bisect.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pytest
from git_samples import commit, git

from pytest_gpuperf.cli import bisect_command
from pytest_gpuperf.cli.bisect_command import Answer, Trial, search, trial_of
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict

COMMITS = [f"c{number:02}" for number in range(65)]


def answers(culprit: int, undecided: set[int] = frozenset()) -> dict[str, Answer]:  # type: ignore[assignment]
    return {
        name: "undecided" if number in undecided else "bad" if number >= culprit else "good"
        for number, name in enumerate(COMMITS)
    }


def test_each_culprit_is_found_with_six_verdicts() -> None:
    for culprit in range(1, 65):
        ask = Mock(side_effect=answers(culprit).__getitem__)
        assert search(COMMITS, ask) == (COMMITS[culprit - 1], (), COMMITS[culprit])
        assert ask.call_count <= 6
        assert not {COMMITS[0], COMMITS[-1]} & {call.args[0] for call in ask.call_args_list}


def test_undecided_ones_are_never_named_guilty() -> None:
    chance = random.Random(5)
    for _ in range(300):
        culprit = chance.randrange(1, 65)
        undecided = {number for number in range(1, 64) if chance.random() < 0.2}
        found = search(COMMITS, answers(culprit, undecided).__getitem__)
        suspects = [*found.between, found.bad]
        assert COMMITS[culprit] in suspects
        if len(suspects) == 1:
            assert found.bad == COMMITS[culprit]


# --- the command, with trials of no run ------------------------------------------------------------

HOG = Key(module="test_hog.py", test="test_hog", workload="hog")
GOOD, OPEN = Trial("good", "SAME on sm_90"), Trial("undecided", "not today")
BAD = Trial("bad", "WORSE on sm_90", red=frozenset({HOG}))


class History(NamedTuple):
    """A repository of six commits, and of a branch ``side`` after the first."""

    folder: Path
    commits: list[str]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("history")
    (folder / "docs").mkdir()
    (folder / "test_hog.py").touch()
    commits = [commit(folder, f"State {number}") for number in range(6)]
    git(folder, "checkout", "-q", "-b", "side", commits[0])
    commit(folder, "Aside")
    git(folder, "checkout", "-q", "main")
    return History(folder, commits)


class Search(NamedTuple):
    """What the command came to."""

    status: int
    out: str
    err: str
    wanted: list[frozenset[Key]]
    """What each commit was asked for."""


Searched = Callable[..., Search]


@pytest.fixture
def searched(history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Searched:
    """A search from the first of as many commits as there are trials; each commit comes to one."""

    def run(trials: Sequence[Trial], named: str = "test_hog.py::test_hog", folder: str = ".", good: str = "") -> Search:
        wanted: list[frozenset[Key]] = []

        def tried(node_id: str, good: str, commit: str, start: Path, sought: frozenset[Key]) -> Trial:
            assert node_id == "test_hog.py::test_hog"
            wanted.append(sought)
            return trials[history.commits.index(commit)]

        monkeypatch.setattr(bisect_command, "_tried", tried)
        monkeypatch.chdir(history.folder / folder)
        good, bad = good or history.commits[0], history.commits[max(len(trials) - 1, 0)]
        status = main(["bisect", "--good", good, "--bad", bad, named.format(top=history.folder)])
        return Search(status, *capsys.readouterr(), wanted)

    return run


def test_commits_that_cannot_be_judged_are_named_together(history: History, searched: Searched) -> None:
    found = searched([GOOD, GOOD, OPEN, OPEN, BAD, BAD])
    assert found.status == 1
    assert f"undecided, one of 3 commits after {history.commits[1][:12]}:" in found.out
    assert found.out.count("not today") == 4
    assert "made it slower" not in found.out


def test_loss_that_was_taken_back_is_not_taken_for_that_of_the_bad_end(searched: Searched) -> None:
    """Each commit is asked for the workloads that are slower at the bad end."""
    found = searched([GOOD, GOOD, GOOD, GOOD, BAD])
    assert (found.status, found.err) == (0, "")
    assert "State 4) made it slower" in found.out
    assert found.wanted == [frozenset(), frozenset(), BAD.red, BAD.red]


@pytest.mark.parametrize("named", ["test_hog.py::test_hog", "{top}/test_hog.py::test_hog"])
def test_test_is_the_file_that_the_root_or_the_folder_sees(searched: Searched, named: str) -> None:
    """A summary names tests from pytest's root; and an absolute path is that of each commit."""
    found = searched([GOOD, BAD], named, "docs")
    assert (found.status, "State 1) made it slower" in found.out) == (0, True)


@pytest.mark.parametrize(("trials", "asked", "said"), [
    ([GOOD, GOOD], 2, "the bad commit * is not slower than the good one: SAME on sm_90"),
    ([GOOD, OPEN], 2, "the bad commit * cannot be judged against the good one: not today"),
    ([OPEN, BAD], 1, "the good commit * is not good: not today"),
])  # fmt: skip
def test_ends_that_cannot_be_are_told(searched: Searched, trials: list[Trial], asked: int, said: str) -> None:
    found = searched(trials)
    assert (found.status, len(found.wanted)) == (1, asked)
    assert all(part in found.err for part in said.split("*"))
    assert "made it slower" not in found.out


@pytest.mark.parametrize(("good", "named", "folder", "said"), [
    ("HEAD", "test_hog.py", ".", "is no ancestor of the bad commit"),
    ("side", "test_hog.py", ".", "git merge-base "),
    ("nowhere", "test_hog.py", ".", "git knows no revision"),
    ("", "../test_hog.py", ".", "/test_hog.py lies outside of the repository"),
    ("", "test_hog.py", "..", "start pytest in the repository of the tests"),
])  # fmt: skip
def test_what_git_cannot_answer_is_an_error(searched: Searched, good: str, named: str, folder: str, said: str) -> None:
    found = searched([], named, folder, good)
    assert (found.status, said in found.err, found.wanted) == (1, True, [])


# --- trials ------------------------------------------------------------------------------------------

OLD, ADDED = ("static", Verdict.SAME), ("static", Verdict.NEW)
WORSE, MISSING = ("static", Verdict.WORSE), ("static", Verdict.NOT_MEASURED)


@pytest.mark.parametrize(("works", "wanted", "answer"), [
    ([[OLD], [ADDED]], [], "good"), ([[ADDED], [OLD]], [], "good"), ([[ADDED]], [], "undecided"),
    ([[OLD, ("time", Verdict.NEW)]], [], "undecided"),
    ([[OLD], [("static", Verdict.UNCHANGED), ADDED]], [], "good"),
    ([[OLD], [ADDED, ("time", Verdict.INCONCLUSIVE)]], [], "undecided"), ([[WORSE], [ADDED]], [], "bad"),
    ([[WORSE], [OLD]], [1], "good"), ([[WORSE], [OLD]], [0], "bad"), ([[OLD], [WORSE]], [], "bad"),
    ([[OLD], [MISSING]], [], "undecided"), ([], [], "undecided"),
])  # fmt: skip
def test_trial_is_of_what_both_have(works: list[list[tuple[str, Verdict]]], wanted: list[int], answer: str) -> None:
    """Of changed code that only the good end's times could judge, it says nothing; nor of a loss that is not sought."""
    found = []
    for number, verdicts in enumerate(works):
        key = Key(module="test_hog.py", test="test_hog", workload=f"hog {number}")
        judged = tuple(Judgement(key=key, target="sm_90", kind=kind, verdict=one) for kind, one in verdicts)
        found.append(WorkloadEvidence(key=key, judgements=judged))
    tests = [TestEvidence(module="test_hog.py", test="test_hog", workloads=tuple(found))]
    assert trial_of(tests, "", {found[number].key for number in wanted}).answer == answer


def test_test_that_fails_by_itself_says_nothing_of_its_commit() -> None:
    judged = (Judgement(key=HOG, target="sm_90", kind="static", verdict=Verdict.SAME),)
    tests = [TestEvidence(module=HOG.module, test=HOG.test, workloads=(WorkloadEvidence(key=HOG, judgements=judged),))]
    assert trial_of(tests, "AssertionError: of its own") == Trial("undecided", "AssertionError: of its own")
