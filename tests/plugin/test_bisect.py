"""``gpuperf bisect`` on real histories of real kernels, without a GPU: exact, by machine code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import HOG, KERNEL, SIMULATED

from pytest_gpuperf.cli.bisect_command import trial_of
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


def test_a_planted_spill_is_found(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(7):
        source = f"// {number}\n{HOG}".replace("0.25f", "0.125f" if number >= 2 else "0.25f")
        history.add(options=SPILLING if number >= 4 else FREE, source=source)
    (history.folder / "test_hog.py").write_text("edited, and not looked at")
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert (status, err) == (0, "")
    assert f"{history.commits[4][:12]} (" in out
    assert "State 4) made it slower" in out
    assert "cause: register spilling" in out
    assert (history.folder / "test_hog.py").read_text() == "edited, and not looked at"


def test_commits_that_do_not_build_are_not_told_apart(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        source = "#error not today\n" if number in (2, 3) else f"{HOG}\n".replace("0.25f", f"0.{number + 2}f")
        history.add(options=SPILLING if number >= 4 else FREE, source=source)
    status, out, _ = bisected(capsys, "--good", history.commits[0], "test_hog.py::test_hog")
    assert status == 1
    assert "not decided, one of 3 commits" in out
    assert "made it slower" not in out
    assert "not today" in out


@pytest.mark.parametrize(
    ("good", "said"),
    [
        (0, "the bad end * is not slower than the good one"), ("HEAD", "is no ancestor of the bad end"),
        ("nowhere", "git knows no revision"),
    ],
)  # fmt: skip
def test_ends_that_cannot_be_are_told(
    history: History, capsys: pytest.CaptureFixture[str], good: int | str, said: str
) -> None:
    for number in range(2):
        history.add(source=f"// {number}\n{HOG}")
    named = history.commits[good] if isinstance(good, int) else good
    status, _, err = bisected(capsys, "--good", named, "test_hog.py")
    assert status == 1
    assert all(part in err for part in said.split("*"))


def test_a_good_end_on_another_branch_is_told_its_merge_base(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    history.add()
    git(history.folder, "checkout", "-q", "-b", "side")
    history.add(options="['-DA']")
    git(history.folder, "checkout", "-q", "main")
    history.add(options=SPILLING)
    status, _, err = bisected(capsys, "--good", "side", "test_hog.py")
    assert (status, "is no ancestor of" in err) == (1, True)


@pytest.mark.parametrize("named", ["test_hog.py::test_hog", "{top}/test_hog.py::test_hog"])
def test_from_a_folder_that_old_commits_lack_a_test_is_the_file_that_the_root_or_the_folder_sees(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """A summary names tests from pytest's root; and an absolute path is that of each commit."""
    history.add()
    (deep := history.folder / "docs" / "plots").mkdir(parents=True)
    (deep / "made.txt").touch()
    for number in range(3):
        history.add(options=SPILLING if number >= 1 else FREE, source=f"// {number}\n{HOG}")
    monkeypatch.chdir(deep)
    status, out, err = bisected(capsys, "--good", history.commits[0], named.format(top=history.folder))
    assert (status, err) == (0, "")
    assert "State 2) made it slower" in out


def test_a_place_outside_of_the_repository_is_refused(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    history.add()
    outside = history.folder.parent / "test_hog.py"
    status, _, err = bisected(capsys, "--good", "HEAD", str(outside))
    assert (status, f"{outside} lies outside of the repository" in err) == (1, True)
    monkeypatch.chdir(outside.parent)
    _, _, err = bisected(capsys, "--good", "v1", "test_hog.py")
    assert "Start in the repository that the tests belong to" in err


def test_a_good_end_whose_test_fails_by_itself_is_told(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    history.add(test=f"{TEST}    assert not 'of its own'\n")
    history.add(options=SPILLING)
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert status == 1
    assert f"the good end {history.commits[0]} is not good: " in err
    assert "of its own" in err
    assert history.commits[1][:12] not in out.partition("\n")[2], "and nothing is asked of the other end"


def test_what_a_commit_adds_hides_no_step(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    """A test that the good end lacks is new in every commit after it, and no reason not to judge the others."""
    other = TEST.replace("test_hog", "test_other").replace('"hog")', '"other")').format(options=FREE)
    for number in range(6):
        source = f"// {number}\n{HOG}" + (HOG.replace("hog", "other") if number >= 1 else "")
        test = TEST + (other if number >= 1 else "")
        history.add(options=SPILLING if number >= 4 else FREE, source=source, test=test)
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert (status, err) == (0, "")
    assert f"{history.commits[4][:12]} (" in out
    assert "State 4) made it slower" in out


def test_a_loss_that_was_taken_back_is_not_taken_for_that_of_the_bad_end(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel of one test spills for a while, that of the other from then on."""
    for number, (first, second) in enumerate([(FREE, FREE), *3 * [(SPILLING, FREE)], *2 * [(FREE, SPILLING)]]):
        other = TEST.replace("test_hog", "test_other").format(options=second)
        history.add(options=first, source=f"// {number}\n{HOG}", test=TEST + other)
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert (status, err) == (0, "")
    assert "State 4) made it slower" in out


def test_a_bad_end_that_cannot_be_judged_is_told_with_the_reason(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    history.add()
    history.add(options=SPILLING, test=TEST.replace("test_hog", "test_renamed"))
    status, _, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert status == 1
    assert "cannot be judged against the good one: NOT-COMPARABLE" in err
    assert "test_hog.py::test_hog [hog], which is gone, and other machine code: rename it" in err


@pytest.mark.parametrize("flag", ["--lf", "--sw"])
def test_flags_of_the_cache_in_the_ini_file(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    (history.folder / "pytest.ini").write_text(f"[pytest]\ngpuperf_arch = sm_90\naddopts = {flag}\n")
    for number in range(3):
        history.add(options=SPILLING if number >= 2 else FREE, source=f"// {number}\n{HOG}")
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert (status, err) == (0, "")
    assert "State 2) made it slower" in out
    assert git(history.folder, "status", "--porcelain") == ""


def test_the_flag_that_pytest_refuses_is_named(history: History, capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.parametrize("ends", ["os._exit(3)", "__import__('pytest').skip('later')"])
def test_times_go_on_deciding_after_a_commit_that_took_none(
    history: History, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    hidden = (
        "    if not __import__('os').environ['CUDA_VISIBLE_DEVICES']:\n        return None\n    return SimulatedGpu("
    )
    (history.folder / "conftest.py").write_text(SIMULATED.replace("    return SimulatedGpu(", hidden))
    for number in range(7):
        steps = 200 if number >= 5 else 100
        (history.folder / "work.cu").write_text(KERNEL.replace("1.5f", f"1.{number + 1}f"))
        (history.folder / "test_work.py").write_text(ON_A_GPU.format(steps=steps, ends=ends if number == 3 else ""))
        history.commits.append(commit(history.folder, f"State {number}"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    status, out, err = bisected(capsys, "--good", history.commits[0], "test_work.py")
    assert (status, err) == (0, "")
    assert "State 5) made it slower" in out
    assert re.search(f"{history.commits[3][:12]}  undecided", out)


OLD, ADDED = ("static", Verdict.SAME), ("static", Verdict.NEW)


@pytest.mark.parametrize(
    ("works", "answer"),
    [
        ([[OLD], [ADDED]], "good"), ([[ADDED], [OLD]], "good"), ([[ADDED]], "undecided"),
        ([[OLD, ("time", Verdict.NEW)]], "undecided"), ([[OLD], [("static", Verdict.UNCHANGED), ADDED]], "good"),
        ([[OLD], [ADDED, ("time", Verdict.INCONCLUSIVE)]], "undecided"),
        ([[("static", Verdict.WORSE)], [ADDED]], "bad"),
    ],
)  # fmt: skip
def test_what_is_new_is_left_out_beside_what_is_good(works: list[list[tuple[str, Verdict]]], answer: str) -> None:
    """Of changed code that only the good end's times could judge, it says nothing."""
    found = []
    for number, verdicts in enumerate(works):
        key = Key(module="test_hog.py", test="test_hog", workload=f"hog {number}")
        judged = tuple(Judgement(key=key, target="sm_90", kind=kind, verdict=one) for kind, one in verdicts)
        found.append(WorkloadEvidence(key=key, judgements=judged))
    trial = trial_of([TestEvidence(module="test_hog.py", test="test_hog", workloads=tuple(found))], "")
    assert trial.answer == answer


TWO_TESTS = """
import pytest

def compiled(cuda_kernel):
    return cuda_kernel("hog.cu", "hog", options={options})

def work(kernel, gpu, gpuperf):
    a = gpu.random(4096, seed=1)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, gpu.empty_like(a))))

def test_first(cuda_kernel, gpu, gpuperf):
    work(compiled(cuda_kernel), gpu, gpuperf)

"""
SECOND = """def test_second(cuda_kernel, gpu, gpuperf):
    {before}
    kernel = compiled(cuda_kernel)
    {between}
    work(kernel, gpu, gpuperf)
"""
SKIP = "pytest.skip('later')"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (SECOND.format(before=SKIP, between=""), "NOT-MEASURED on sm_90: its test was skipped"),
        (SECOND.format(before="", between=SKIP), "good       UNCHANGED"),
        ("", "good       UNCHANGED"),
    ],
    ids=["skipped at its beginning", "skipped with its machine code at hand", "deleted"],
)
def test_a_commit_that_skips_a_test_is_not_good_by_the_machine_code_of_others(
    history: History, capsys: pytest.CaptureFixture[str], second: str, said: str
) -> None:
    history.add(test=TWO_TESTS + SECOND.format(before="", between=""))
    history.add(test=TWO_TESTS + second)
    status, out, _ = bisected(capsys, "--good", history.commits[0], "test_hog.py")
    assert status == 1
    assert said in out.splitlines()[-1]
