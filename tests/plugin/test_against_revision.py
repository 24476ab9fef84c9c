"""Comparing with a git revision instead of with baselines, without a GPU: exact, by machine code."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_samples import commit, git
from suite_under_test import HOG, Suite

from pytest_gpuperf.cli.command_line import main

STATIC = ("--gpuperf", "--gpuperf-arch=sm_90")
AGAINST = (*STATIC, "--gpuperf-against=HEAD")


@pytest.fixture
def project(suite: Suite) -> Suite:
    """A repository without baselines."""
    suite.write(".gitignore", "__pycache__\n.gpuperf\n")
    commit(suite.path)
    return suite


def outcome(result: pytest.RunResult) -> dict[str, int]:
    return {name: count for name, count in result.parseoutcomes().items() if name != "warnings"}


def test_the_same_code_is_unchanged_without_any_baseline(project: Suite) -> None:
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*against HEAD*", "* is what is checked out here, and no tracked file is changed: *"])
    result.stdout.no_fnmatch_line("*NEW*")
    assert not (project.path / "baselines").exists()


def test_a_gain_over_a_revision_makes_no_baseline_stale(project: Suite) -> None:
    slow = (project.path / "work.cu").read_text().replace("extern", "// with double\nextern")
    project.write("work.cu", slow.replace("1.5f", "1.5"))
    commit(project.path)
    project.write("work.cu", slow)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*  BETTER  on sm_90 (static)", "    instructions: fp64 * -> 0"])
    result.stdout.no_fnmatch_line("*baseline is stale*")


def test_commands_read_the_baselines_after_it(
    project: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.path)
    assert project.run(*STATIC, "--update-baselines=all", subprocess=True).ret == 0
    capsys.readouterr()
    assert main(["baselines"]) == 0
    before = capsys.readouterr().out
    assert project.run(*AGAINST, subprocess=True).ret == 0
    capsys.readouterr()
    assert main(["baselines"]) == 0
    assert capsys.readouterr().out == before
    assert main(["baselines", "mv", "test_suite.py::test_other", "test_suite.py::test_moved"]) == 0
    assert git(project.path, "status", "--porcelain", "--", "baselines")


def test_a_spill_is_red_with_its_figures(project: Suite) -> None:
    project.write("hog.cu", HOG)
    project.write("test_hog.py", hog_test("[]"))
    commit(project.path)
    project.write("test_hog.py", hog_test("['-maxrregcount=32']"))
    result = project.run(*AGAINST, "test_hog.py", subprocess=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*WORSE*", "*spill*0 -> *"])
    result.stdout.no_fnmatch_line("*--update-baselines*")
    result.stdout.no_fnmatch_line("*is what is checked out here*")


def wider(result: pytest.RunResult) -> list[str]:
    return [line for line in result.stdout.lines if "wider tolerance" in line]


def hog_test(options: str) -> str:
    return (
        "def test_hog(cuda_kernel, gpu, gpuperf):\n"
        f"    kernel = cuda_kernel('hog.cu', 'hog', options={options})\n"
        "    a = gpu.random(4096, seed=1)\n"
        "    gpuperf(kernel.launch(grid=1, block=32, args=(a, gpu.empty_like(a))))\n"
    )


def replace_other(project: Suite) -> None:
    """By a test of another kernel."""
    project.edit("test_suite.py", "def test_other(", "def test_another(")
    project.edit("test_suite.py", 'cuda_kernel("other.cu", "other")', 'cuda_kernel("third.cu", "third")')
    project.write("third.cu", (project.path / "other.cu").read_text().replace("other", "third").replace("2.0f", "3.0f"))


def test_what_only_one_side_has_is_new_or_gone_and_passes(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    replace_other(project)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(
        ["GONE, only in *: test_suite.py::test_other", "1 new workload without a counterpart in HEAD"]
    )


RENAMED = {
    "the test": lambda project: project.edit("test_hog.py", "def test_hog", "def test_hag"),
    "the file": lambda project: (project.path / "test_hog.py").rename(project.path / "test_hag.py"),
}


@pytest.mark.parametrize("what", RENAMED)
def test_a_loss_is_not_hidden_by_a_new_name(project: Suite, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("CI", "true")
    project.write("hog.cu", HOG)
    project.write("test_hog.py", hog_test("[]"))
    commit(project.path)
    RENAMED[what](project)
    green = project.run(*AGAINST, subprocess=True)
    assert green.ret == 0, green.stdout.str()
    green.stdout.fnmatch_lines(["* 4 UNCHANGED"])
    green.stdout.no_fnmatch_line("*GONE*")
    file = "test_hog.py" if what == "the test" else "test_hag.py"
    project.edit(file, "options=[]", "options=['-maxrregcount=32']")
    red = project.run(*AGAINST, subprocess=True)
    assert red.ret == 1
    red.stdout.fnmatch_lines(
        ["hog  NOT-COMPARABLE  on sm_90*", "*it has the kernel of test_hog.py::test_hog [[]hog], which is gone, and "
         "other machine code: rename it in a change of its own"]
    )  # fmt: skip
    red.stdout.no_fnmatch_line("*gpuperf baselines mv*")


LEAVE = "pytest.exit('enough', returncode=0)"
ENDED_THERE = "* has nothing to compare with: the other process has ended (pytest exit status 0)"
NO_END = "ERROR: *its tests cannot run: the other process has ended (pytest exit status 0)*"


@pytest.mark.parametrize(
    ("place", "more", "status", "said"),
    [
        ("test_suite.py", f"@pytest.fixture\ndef gpu():\n    {LEAVE}\n\n", 1, ENDED_THERE),
        ("conftest.py", f"import pytest\ndef pytest_itemcollected():\n    {LEAVE}\n\n", 4, NO_END),
        ("conftest.py", f"import pytest\ndef pytest_collection_modifyitems():\n    {LEAVE}\n\n", 4, NO_END),
    ],
    ids=["a test", "while it collects", "after it"],
)
def test_what_did_not_run_there_for_an_exit_is_not_new(
    project: Suite, monkeypatch: pytest.MonkeyPatch, place: str, more: str, status: int, said: str
) -> None:
    monkeypatch.setenv("CI", "true")
    file = project.path / place
    mine = file.read_text() if file.exists() else "# none\n"
    before, mark, after = mine.partition("def test_other")
    project.write(place, f"{before}{more}{mark}{after}")
    commit(project.path)
    project.write(place, mine)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == status
    (result.stderr if status == 4 else result.stdout).fnmatch_lines([said])


def test_a_test_that_fails_there_is_not_comparable(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    project.edit("test_suite.py", 'kernel = cuda_kernel("other.cu", "other")', 'assert False, "unready"')
    commit(project.path)
    project.edit("test_suite.py", 'assert False, "unready"', 'kernel = cuda_kernel("other.cu", "other")')
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", "*its test fails there: AssertionError: unready*"])


def test_a_file_that_cannot_be_collected_there_is_not_comparable(
    project: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    project.write("test_more.py", "import nothing_of_that_name\n")
    commit(project.path)
    project.write("test_more.py", hog_test("[]"))
    project.write("hog.cu", HOG)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", "*its file could not be collected there*"])
    assert outcome(result) == {"failed": 1, "static": 3}


def test_a_test_that_is_skipped_here_is_missed(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    project.edit("test_suite.py", "def test_other(", "@pytest.mark.skip(reason='later')\ndef test_other(")
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*NOT-MEASURED*test_other (later)*"])


def test_a_selection_is_that_of_both_sides(project: Suite) -> None:
    project.edit("work.cu", "x * 1.5f", "x * 1.5f + b[i]")
    result = project.run(*AGAINST, "-k", "other", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"static": 1, "deselected": 2})
    result = project.run(*AGAINST, "test_suite.py::test_work", subprocess=True)
    assert outcome(result) == {"static": 2}
    result.stdout.fnmatch_lines(["*SAME*"])
    result.stdout.no_fnmatch_line("*GONE*")


def test_workers_of_xdist_compare_with_it_too(project: Suite) -> None:
    project.edit("other.cu", "2.0f", "4.0f")
    result = project.run(*AGAINST, "-n", "2", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"static": 3})
    result.stdout.fnmatch_lines(["*doubling*SAME*"])
    assert result.stdout.str().count("comparing with") == 1


def test_the_merge_base_is_compared_with(project: Suite) -> None:
    git(project.path, "checkout", "-q", "-b", "branch")
    project.edit("other.cu", "2.0f", "4.0f")
    commit(project.path)
    git(project.path, "checkout", "-q", "main")
    project.edit("other.cu", "2.0f", "8.0f * a[0]")
    commit(project.path)
    git(project.path, "checkout", "-q", "branch")
    result = project.run(*STATIC, "--gpuperf-against=merge-base:main", "-k", "other", subprocess=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*doubling*10 / 0 / 100%*SAME*"])


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--gpuperf-against=nowhere",), "--gpuperf-against=nowhere: git knows no revision 'nowhere'*"),
        (("--gpuperf-against=HEAD", "--gpuperf-baselines=baselines"), "*exclude each other*"),
        (("--gpuperf-against=HEAD", "--gpuperf-ncu"), "*compares no counters*"),
        (("--gpuperf-against=HEAD", "--gpuperf-against-python=nowhere"), "*there is no program*nowhere*"),
        (("--gpuperf-against-python=python",), "*there is no revision to run*"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(project: Suite, flags: tuple[str, ...], said: str) -> None:
    result = project.run(*STATIC, *flags, subprocess=True)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{said}"])


def test_a_conftest_that_breaks_there_is_told_with_its_log(project: Suite) -> None:
    project.write("conftest.py", "raise RuntimeError('not today')\n")
    commit(project.path)
    project.write("conftest.py", "")
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*its tests cannot run: *", "*not today*"])


# --- with a simulated GPU ----------------------------------------------------------------------------


@pytest.fixture
def gpu_project(gpu_suite: Suite) -> Suite:
    """The same with a simulated GPU."""
    gpu_suite.write(".gitignore", "__pycache__\n.gpuperf\n")
    commit(gpu_suite.path)
    return gpu_suite


def test_unchanged_code_is_not_paired(gpu_project: Suite) -> None:
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"passed": 3})
    assert result.stdout.str().count("UNCHANGED") >= 3
    result.stdout.no_fnmatch_line("*no time baseline*")


def test_unchanged_code_has_a_time_for_what_looks_at_it(gpu_project: Suite) -> None:
    gpu_project.write("test_rounds.py", ROUNDS)
    commit(gpu_project.path)
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "test_rounds.py", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"passed": 1})


ROUNDS = """
def test_rounds(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=200"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    result = gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)))
    assert result.interval_ns[0] <= result.time_ns <= result.interval_ns[1] and result.time_ns > 0
"""


def test_changed_code_of_the_same_speed_is_the_same(gpu_project: Suite) -> None:
    gpu_project.change_code()
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "-k", "work", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"passed": 2, "deselected": 1})
    result.stdout.fnmatch_lines(["*work*SAME*"])


def test_slower_code_is_slower_in_two_processes(gpu_project: Suite) -> None:
    gpu_project.edit("test_suite.py", "STEPS=100", "STEPS=105")
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "-k", "work and 1024", subprocess=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*SLOWER*", "*in two processes*", "*Compared with *"])
    result.stdout.no_fnmatch_line("*--update-baselines*")


def test_other_arguments_are_paired_or_named(gpu_project: Suite) -> None:
    gpu_project.edit("test_suite.py", "[1024, 2048]", "[1024, 2047]")
    gpu_project.edit("test_suite.py", "def test_work(cuda_kernel, gpu, gpuperf, size):",
                     "def test_work(cuda_kernel, gpu, gpuperf, size):\n    size = size // 2")  # fmt: skip
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "-k", "work", "-v", subprocess=True)
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*", "*argument 1 was float32?1024? and is float32?512?*"])


IN_TURN = """
import os, time
from pathlib import Path
from simulated_gpu import task_of

def test_turns(cuda_kernel, gpu, gpuperf, request):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    ended = Path(os.environ["ENDED"])
    if task_of(request.config):
        time.sleep(0.3)
    else:
        assert ended.exists()
    gpuperf(kernel.launch(grid=2, block=256, args=(a, gpu.empty_like(a), 512)))
    ended.touch()
"""


def test_the_revision_is_done_with_the_gpu_when_a_test_here_takes_it(
    gpu_project: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDED", str(gpu_project.path.parent / f"{gpu_project.path.name}-ended"))
    gpu_project.write("test_turns.py", IN_TURN)
    commit(gpu_project.path)
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "test_turns.py", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"passed": 1}), result.stdout.str()


# --- kills --------------------------------------------------------------------------------------------

HANGS = """
import os, time
from pathlib import Path

def test_hangs(cuda_kernel):
    cuda_kernel("other.cu", "other")
    Path(os.environ["HANGING"]).write_text(str(os.getpid()))
    time.sleep(60)
"""


def test_a_run_that_is_killed_leaves_no_process_and_no_lock(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = project.path.parent / f"{project.path.name}-cache"
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(cache))
    hanging = project.path.parent / f"{project.path.name}-hanging"
    monkeypatch.setenv("HANGING", str(hanging))
    project.write("test_suite.py", HANGS)
    commit(project.path)
    project.write("test_suite.py", HANGS.replace("    time.sleep(60)\n", ""))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *AGAINST]
    killed = subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = int(until(lambda: hanging.exists() and hanging.read_text()))
    killed.kill()
    killed.wait()
    until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])
    project.write("test_suite.py", HANGS.replace("    time.sleep(60)\n", ""))
    git(project.path, "commit", "-qam", "No more")
    assert project.run(*AGAINST, subprocess=True).ret == 0
    trees = [path.name for path in (cache / ".worktrees").glob("*/*") if (path / ".git").exists()]
    assert trees == ["0"]  # the killed run's place was taken over


def test_a_killed_process_of_the_revision_is_an_error(project: Suite) -> None:
    project.write("test_suite.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    commit(project.path)
    project.write("test_suite.py", HANGS.replace("time.sleep(60)", "pass"))
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*its tests cannot run: the other process has ended (pytest exit status -9)*"])


def until(found: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What it gives, as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


BEHIND_A_TIME = """
def test_rounds(cuda_kernel, gpu, gpuperf):
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=200"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    assert gpuperf(first.launch(grid=8, block=256, args=(a, b, 1024)), name="first").time_ns > 0
    second = cuda_kernel("work.cu", "work", options=["-DSTEPS=STEPS"])
    gpuperf(second.launch(grid=8, block=256, args=(a, b, 1024)), name="second")
"""


def test_a_launch_behind_a_time_is_compared_too(gpu_project: Suite) -> None:
    """The other side ends a test where it reads a time, and runs it again for what is missing."""
    gpu_project.write("test_rounds.py", BEHIND_A_TIME.replace("=STEPS", "=300"))
    commit(gpu_project.path)
    gpu_project.write("test_rounds.py", BEHIND_A_TIME.replace("=STEPS", "=400"))
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "test_rounds.py", subprocess=True)
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["second  SLOWER*"])
    result.stdout.no_fnmatch_line("*NEW*")
