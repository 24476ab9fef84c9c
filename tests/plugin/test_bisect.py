"""``gpuperf bisect`` on real histories: of real kernels, exact by machine code; its search by trials of no run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import HOG, KERNEL, SIMULATED

from pytest_gpuperf.cli import bisect_command
from pytest_gpuperf.cli.bisect_command import Trial, trial_of
from pytest_gpuperf.cli.command_line import main
from pytest_gpuperf.model.evidence import Key
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict

TEST = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options={options})
    a = gpu.random(4096, seed=1)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, gpu.empty_like(a))))
"""
FREE, SPILLING = "[]", "['-maxrregcount=32']"


class History:
    """A repository of one kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []

    def add(self, *, options: str = FREE, source: str = HOG, test: str = TEST) -> None:
        """Commit a state."""
        (self.folder / "hog.cu").write_text(source)
        (self.folder / "test_hog.py").write_text(test.format(options=options))
        self.commits.append(commit(self.folder, f"State {len(self.commits)}"))


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\ngpuperf_arch = sm_90\n")
    (folder / ".gitignore").write_text("__pycache__\n.gpuperf\n")
    monkeypatch.chdir(folder)
    return History(folder)


def bisected(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["bisect", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


OTHER = TEST.replace("test_hog", "test_other").replace('"hog")', '"other")')


def test_planted_spill_is_found(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder that old commits lack, beside a test that the good end lacks and the cache's flags in the ini."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")  # with pytest's own plugins
    (history.folder / "pytest.ini").write_text("[pytest]\ngpuperf_arch = sm_90\naddopts = --lf --sw\n")
    history.add()
    (deep := history.folder / "docs" / "plots").mkdir(parents=True)
    (deep / "made.txt").touch()
    for number in range(1, 5):
        source = f"// {number}\n{HOG}".replace("0.25f", "0.125f") + HOG.replace("hog", "other")
        history.add(options=SPILLING if number >= 3 else FREE, source=source, test=TEST + OTHER.format(options=FREE))
    (history.folder / "test_hog.py").write_text("edited, and not looked at")
    monkeypatch.chdir(deep)
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert (status, err) == (0, "")
    assert f"{history.commits[3][:12]} (" in out
    assert "State 3) made it slower" in out
    assert "cause: register spilling" in out
    assert git(history.folder, "status", "--porcelain") == "M test_hog.py"


# --- by trials of no run -------------------------------------------------------------------------

HOG_KEY = Key(module="test_hog.py", test="test_hog", workload="hog")
GOOD, OPEN = Trial("good", "SAME on sm_90"), Trial("undecided", "not today")
BAD = Trial("bad", "WORSE on sm_90", red=frozenset({HOG_KEY}))


@pytest.fixture
def searched(history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """A search from the first of so many commits, each of which comes to one trial; and what each was asked for."""

    def search(
        trials: list[Trial], named: str = "test_hog.py::test_hog", folder: str = "."
    ) -> tuple[int, str, str, list[frozenset[Key]]]:
        for number in range(len(trials)):
            history.add(source=f"// {number}\n{HOG}")
        wanted = []

        def tried(node_id: str, good: str, commit: str, start: Path, sought: frozenset[Key]) -> Trial:
            assert node_id == "test_hog.py::test_hog"
            wanted.append(sought)
            return trials[history.commits.index(commit)]

        monkeypatch.setattr(bisect_command, "_tried", tried)
        (history.folder / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(history.folder / folder)
        return *bisected(capsys, "--good", history.commits[0], named.format(top=history.folder)), wanted

    return search


def test_commits_that_cannot_be_judged_are_named_together(history: History, searched) -> None:
    status, out, _, _ = searched([GOOD, GOOD, OPEN, OPEN, BAD, BAD])
    assert status == 1
    assert f"not decided, one of 3 commits after {history.commits[1][:12]}:" in out
    assert out.count("not today") == 4
    assert "made it slower" not in out


def test_loss_that_was_taken_back_is_not_taken_for_that_of_the_bad_end(searched) -> None:
    """Each commit is asked for the workloads that are slower at the bad end."""
    status, out, err, wanted = searched([GOOD, GOOD, GOOD, GOOD, BAD])
    assert (status, err) == (0, "")
    assert "State 4) made it slower" in out
    assert wanted == [frozenset(), frozenset(), BAD.red, BAD.red]


@pytest.mark.parametrize("named", ["test_hog.py::test_hog", "{top}/test_hog.py::test_hog"])
def test_test_is_the_file_that_the_root_or_the_folder_sees(searched, named: str) -> None:
    """A summary names tests from pytest's root; and an absolute path is that of each commit."""
    status, out, _, _ = searched([GOOD, BAD], named, "docs")
    assert (status, "State 1) made it slower" in out) == (0, True)


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ([GOOD, GOOD], "the bad end * is not slower than the good one: SAME on sm_90"),
        ([GOOD, OPEN], "the bad end * cannot be judged against the good one: not today"),
        ([OPEN, BAD], "the good end * is not good: not today"),
    ],
)
def test_ends_that_cannot_be_are_told(searched, trials: list[Trial], said: str) -> None:
    status, out, err, wanted = searched(trials)
    assert status == 1
    assert all(part in err for part in said.split("*"))
    assert len(wanted) == (1 if trials[0] is OPEN else 2)
    assert "made it slower" not in out


def test_ends_that_git_does_not_order_are_told(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    history.add()
    git(history.folder, "checkout", "-q", "-b", "side")
    history.add(options="['-DA']")
    git(history.folder, "checkout", "-q", "main")
    history.add(options=SPILLING)
    for good, said in (("side", "is no ancestor of the bad end"), ("nowhere", "git knows no revision")):
        status, _, err = bisected(capsys, "--good", good, "test_hog.py")
        assert (status, said in err) == (1, True)
    assert "git merge-base" in bisected(capsys, "--good", "side", "test_hog.py")[2]


def test_place_outside_of_the_repository_is_refused(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    history.add()
    outside = history.folder.parent / "test_hog.py"
    status, _, err = bisected(capsys, "--good", "HEAD", str(outside))
    assert (status, f"{outside} lies outside of the repository" in err) == (1, True)
    monkeypatch.chdir(outside.parent)
    _, _, err = bisected(capsys, "--good", "v1", "test_hog.py")
    assert "Start in the repository that the tests belong to" in err


# --- trials --------------------------------------------------------------------------------------


def test_flag_that_pytest_refuses_is_named(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    history.add()
    (history.folder / "pytest.ini").write_text("[pytest]\naddopts = --no-such-flag\n")
    history.add()
    status, out, _ = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert status == 1
    assert f"{history.commits[1][:12]}  undecided  unrecognized arguments: --no-such-flag" in out


ON_A_GPU = """
import os

def test_work(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS={steps}"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    if {ends!r} and os.environ["CUDA_VISIBLE_DEVICES"]:
        exec({ends!r})
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)))
"""
"""Its kernel takes longer by its steps, and has no machine code that is worse; on a GPU it may not come so far."""


def test_times_go_on_deciding_after_a_commit_that_took_none(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = (
        "    if not __import__('os').environ['CUDA_VISIBLE_DEVICES']:\n        return None\n    return SimulatedGpu("
    )
    (history.folder / "conftest.py").write_text(SIMULATED.replace("    return SimulatedGpu(", hidden))
    for number in range(5):
        steps, ends = 200 if number >= 4 else 100, "os._exit(3)" if number == 2 else ""
        (history.folder / "work.cu").write_text(KERNEL.replace("1.5f", f"1.{number + 1}f"))
        (history.folder / "test_work.py").write_text(ON_A_GPU.format(steps=steps, ends=ends))
        history.commits.append(commit(history.folder, f"State {number}"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_work.py")
    assert (status, err) == (0, "")
    assert "State 4) made it slower" in out
    assert re.search(f"{history.commits[2][:12]}  undecided", out)


def test_commit_that_skips_a_test_is_not_good_by_the_machine_code_of_others(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    second = TEST.replace("test_hog", "test_second").format(options=FREE)
    history.add(test=TEST + second)
    history.add(test=TEST + second.replace("    kernel", "    __import__('pytest').skip('later')\n    kernel"))
    status, out, _ = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert status == 1
    assert "NOT-MEASURED on sm_90: its test was skipped" in out.splitlines()[-1]


OLD, ADDED = ("static", Verdict.SAME), ("static", Verdict.NEW)


WORSE = ("static", Verdict.WORSE)


@pytest.mark.parametrize(
    ("works", "wanted", "answer"),
    [
        ([[OLD], [ADDED]], [], "good"), ([[ADDED], [OLD]], [], "good"), ([[ADDED]], [], "undecided"),
        ([[OLD, ("time", Verdict.NEW)]], [], "undecided"),
        ([[OLD], [("static", Verdict.UNCHANGED), ADDED]], [], "good"),
        ([[OLD], [ADDED, ("time", Verdict.INCONCLUSIVE)]], [], "undecided"), ([[WORSE], [ADDED]], [], "bad"),
        ([[WORSE], [OLD]], [1], "good"), ([[WORSE], [OLD]], [0], "bad"), ([[OLD], [WORSE]], [], "bad"),
    ],
)  # fmt: skip
def test_trial_is_judged_by_what_both_ends_have(
    works: list[list[tuple[str, Verdict]]], wanted: list[int], answer: str
) -> None:
    """Of changed code that only the good end's times could judge, it says nothing; nor of a loss that is not sought."""
    found = []
    for number, verdicts in enumerate(works):
        key = Key(module="test_hog.py", test="test_hog", workload=f"hog {number}")
        judged = tuple(Judgement(key=key, target="sm_90", kind=kind, verdict=one) for kind, one in verdicts)
        found.append(WorkloadEvidence(key=key, judgements=judged))
    tests = [TestEvidence(module="test_hog.py", test="test_hog", workloads=tuple(found))]
    assert trial_of(tests, "", {found[number].key for number in wanted}).answer == answer
