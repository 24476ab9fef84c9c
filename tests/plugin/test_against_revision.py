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
from suite_under_test import HOG, Suite, sections

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


def test_same_code_is_unchanged_without_any_baseline(project: Suite) -> None:
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*against HEAD*", "* is what is checked out here, and no tracked file is changed: *"])
    result.stdout.no_fnmatch_line("*NEW*")
    assert not (project.path / "baselines").exists()


KERNEL_TEST = """
def {name}(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("{kernel}.cu", "{kernel}", options={options})
    a = gpu.random(4096, seed=1)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, gpu.empty_like(a){more})))
"""
SPILLING = "['-maxrregcount=32']"


def text_of(kernel: str, options: str = "[]", name: str = "", more: str = "") -> str:
    return KERNEL_TEST.format(kernel=kernel, options=options, name=name or f"test_{kernel}", more=more)


def test_each_difference_has_its_verdict(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    other = (project.path / "other.cu").read_text()
    project.write("hog.cu", HOG)
    for name in ("gain", "third"):
        project.write(f"{name}.cu", other.replace("other", name).replace("2.0f", "1.1" if name == "gain" else "3.0f"))
    there = {
        "spill": text_of("hog"), "gain": text_of("gain", more=", 4096"), "replaced": text_of("other", more=", 4096"),
        "failing": "def test_failing(cuda_kernel):\n    assert False, 'unready'\n",
        "uncollected": "import nothing_of_that_name\n", "skipped": text_of("hog", name="test_skipped"),
    }  # fmt: skip
    for name, text in there.items():
        project.write(f"test_{name}.py", text)
    commit(project.path)
    project.edit("gain.cu", "1.1", "1.1f")
    here = {
        "spill": text_of("hog", SPILLING), "replaced": text_of("third", more=", 4096"),
        "failing": text_of("hog", name="test_failing"), "uncollected": text_of("hog", name="test_uncollected"),
        "skipped": "import pytest\n@pytest.mark.skip(reason='later')" + there["skipped"],
    }  # fmt: skip
    for name, text in here.items():
        project.write(f"test_{name}.py", text)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcome(result) == {"failed": 3, "static": 5, "skipped": 1}
    said = sections(result)
    assert "WORSE" in said["hog"]
    assert "    spill stores 0 -> " in said["hog"]
    assert "its test fails there: AssertionError: unready" in said["failing"]
    assert "its file could not be collected there" in said["uncollected"]
    assert all("NOT-COMPARABLE" in said[name] for name in ("failing", "uncollected"))
    result.stdout.fnmatch_lines(["*  BETTER  on sm_90 (static)", "    instructions: fp64 * -> 0"])
    result.stdout.fnmatch_lines(["*GONE, only in *: test_replaced.py::test_other*"])
    result.stdout.fnmatch_lines(["*1 new workload without a counterpart in HEAD*"])
    result.stdout.fnmatch_lines(["*NOT-MEASURED*test_skipped (later)*"])
    for words in ("*--update-baselines*", "*baseline is stale*", "*is what is checked out here*"):
        result.stdout.no_fnmatch_line(words)


def test_loss_is_not_hidden_by_a_new_name(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a test, or of a file."""
    monkeypatch.setenv("CI", "true")
    project.write("hog.cu", HOG)
    project.write("hug.cu", HOG.replace("hog", "hug").replace("0.25f", "0.125f"))
    project.write("test_hog.py", text_of("hog"))
    project.write("test_hug.py", text_of("hug"))
    commit(project.path)
    project.edit("test_hog.py", "def test_hog", "def test_hag")
    (project.path / "test_hug.py").rename(project.path / "test_hig.py")
    green = project.run(*AGAINST, subprocess=True)
    assert green.ret == 0, green.stdout.str()
    green.stdout.fnmatch_lines(["* 5 UNCHANGED"])
    green.stdout.no_fnmatch_line("*GONE*")
    for file in ("test_hog.py", "test_hig.py"):
        project.edit(file, "options=[]", f"options={SPILLING}")
    red = project.run(*AGAINST, subprocess=True)
    assert red.ret == 1
    said = sections(red)
    for name, was in (("hag", "test_hog.py::test_hog [hog]"), ("hug", "test_hug.py::test_hug [hug]")):
        assert "NOT-COMPARABLE  on sm_90" in said[name]
        assert f"it has the kernel of {was}, which is gone, and other machine code" in said[name]
    red.stdout.no_fnmatch_line("*gpuperf baselines mv*")


ENDED = "the other process has ended (pytest exit status {})"


@pytest.mark.parametrize(
    ("place", "there", "status", "said"),
    [
        ("test_suite.py", "import pytest\n@pytest.fixture\ndef gpu():\n    pytest.exit('enough', returncode=0)\n", 1,
         f"* has nothing to compare with: {ENDED.format(0)}"),
        ("conftest.py", "def pytest_itemcollected():\n    import pytest\n    pytest.exit('enough', returncode=0)\n", 4,
         f"ERROR: *its tests cannot run: {ENDED.format(0)}*"),
        ("test_suite.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", 4,
         f"*its tests cannot run: {ENDED.format(-9)}*"),
        ("conftest.py", "raise RuntimeError('not today')\n", 4, "*its tests cannot run: *not today*"),
    ],
    ids=["exit of a test", "exit of a hook", "killed", "broken conftest"],
)  # fmt: skip
def test_what_did_not_run_there_is_not_new(
    project: Suite, monkeypatch: pytest.MonkeyPatch, place: str, there: str, status: int, said: str
) -> None:
    monkeypatch.setenv("CI", "true")
    file = project.path / place
    here = file.read_text() if file.exists() else "# none\n"
    project.write(place, there + (here if status == 1 else ""))
    commit(project.path)
    project.write(place, here)
    result = project.run(*AGAINST, subprocess=True)
    assert result.ret == status
    (result.stderr if status == 4 else result.stdout).fnmatch_lines([said])


def test_selection_is_that_of_both_sides(project: Suite) -> None:
    project.edit("work.cu", "x * 1.5f", "x * 1.5f + b[i]")
    result = project.run(*AGAINST, "test_suite.py::test_work", "-k", "1024", subprocess=True)
    assert outcome(result) == {"static": 1, "deselected": 1}
    result.stdout.fnmatch_lines(["*SAME*"])
    result.stdout.no_fnmatch_line("*GONE*")


def test_workers_of_xdist_compare_with_it_too(project: Suite) -> None:
    project.edit("other.cu", "2.0f", "4.0f")
    result = project.run(*AGAINST, "-n", "2", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"static": 3})
    result.stdout.fnmatch_lines(["*doubling*SAME*"])
    assert result.stdout.str().count("comparing with") == 1


def test_merge_base_is_compared_with(project: Suite) -> None:
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


def test_what_cannot_be_compared_is_a_usage_error(project: Suite) -> None:
    for flags, said in {
        ("--gpuperf-against=nowhere",): "--gpuperf-against=nowhere: git knows no revision 'nowhere'*",
        ("--gpuperf-against=HEAD", "--gpuperf-baselines=baselines"): "*exclude each other*",
        ("--gpuperf-against=HEAD", "--gpuperf-ncu"): "*compares no counters*",
        ("--gpuperf-against=HEAD", "--gpuperf-against-python=nowhere"): "*there is no program*nowhere*",
        ("--gpuperf-against-python=python",): "*there is no revision to run*",
    }.items():
        result = project.run(*STATIC, *flags)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{said}"])


# --- with a simulated GPU ----------------------------------------------------------------------------


@pytest.fixture
def gpu_project(gpu_suite: Suite) -> Suite:
    """The same with a simulated GPU."""
    gpu_suite.write(".gitignore", "__pycache__\n.gpuperf\n")
    commit(gpu_suite.path)
    return gpu_suite


ROUNDS = """
def test_rounds(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=200"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    result = gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)))
    assert result.interval_ns[0] <= result.time_ns <= result.interval_ns[1] and result.time_ns > 0
"""
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


def test_unchanged_code_is_not_paired_and_has_times_for_what_looks_at_them(
    gpu_project: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The revision is done with the GPU when a test here takes it."""
    monkeypatch.setenv("ENDED", str(gpu_project.path.parent / f"{gpu_project.path.name}-ended"))
    gpu_project.write("test_rounds.py", ROUNDS)
    gpu_project.write("test_turns.py", IN_TURN)
    commit(gpu_project.path)
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", subprocess=True)
    assert (result.ret, outcome(result)) == (0, {"passed": 5}), result.stdout.str()
    result.stdout.fnmatch_lines(["5 workloads: 5 UNCHANGED"])
    result.stdout.no_fnmatch_line("*no time baseline*")


BEHIND_A_TIME = """
def test_rounds(cuda_kernel, gpu, gpuperf):
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=200"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    assert gpuperf(first.launch(grid=8, block=256, args=(a, b, 1024)), name="first").time_ns > 0
    second = cuda_kernel("work.cu", "work", options=["-DSTEPS=STEPS"])
    gpuperf(second.launch(grid=8, block=256, args=(a, b, 1024)), name="second")
"""
OTHER_ARGUMENTS = """
def test_arguments(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random(SIZE, seed=1)
    gpuperf(kernel.launch(grid=4, block=256, args=(a, gpu.empty_like(a), SIZE)))
"""


def test_changed_code_is_paired(gpu_project: Suite) -> None:
    """Behind a time, too: the other side ends a test where it reads one, and runs it again for what is missing."""
    gpu_project.write("test_behind.py", BEHIND_A_TIME.replace("=STEPS", "=300"))
    gpu_project.write("test_arguments.py", OTHER_ARGUMENTS.replace("SIZE", "1024"))
    commit(gpu_project.path)
    gpu_project.change_code()
    gpu_project.write("test_behind.py", BEHIND_A_TIME.replace("=STEPS", "=400"))
    gpu_project.write("test_arguments.py", OTHER_ARGUMENTS.replace("SIZE", "512"))
    result = gpu_project.run("--gpuperf", "--gpuperf-against=HEAD", "--gpuperf-open=fail", subprocess=True)
    assert (result.ret, outcome(result)) == (1, {"passed": 3, "failed": 2}), result.stdout.str()
    result.stdout.fnmatch_lines(["6 workloads: 1 SLOWER, 1 NOT-COMPARABLE, 3 SAME, 1 UNCHANGED"])
    said = sections(result)
    for words in ("second  SLOWER", "in two processes", "Compared with "):
        assert words in said["rounds"]
    assert "--update-baselines" not in said["rounds"]
    assert "argument 1 was float32[1024] and is float32[512]" in said["arguments"]


# --- kills --------------------------------------------------------------------------------------------

HANGS = """
import os, time
from pathlib import Path

def test_hangs(cuda_kernel):
    cuda_kernel("other.cu", "other")
    Path(os.environ["HANGING"]).write_text(str(os.getpid()))
    time.sleep(60)
"""


def test_run_that_is_killed_leaves_no_process_and_no_lock(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
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


def until(found: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What it gives, as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come to that")
