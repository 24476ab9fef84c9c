"""Comparing with a git revision instead of with baselines: what a user sees of both sides, whole runs.

The tables of its parts are in tests/unit/revision, what its process may import and read in ``test_revision_imports``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import HOG, SIMULATED, Command, Suite, hog_test, sections

STATIC = ("--gpuperf", "--gpuperf-arch=sm_90")
AGAINST = (*STATIC, "--gpuperf-against=HEAD")
ON_GPU = ("--gpuperf", "--gpuperf-against=HEAD")
SPILL = "['-maxrregcount=32']"


@pytest.fixture
def project(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A repository without baselines, under CI."""
    monkeypatch.setenv("CI", "true")
    suite.write(".gitignore", "__pycache__\n.gpuperf\n")
    commit(suite.path)
    return suite


@pytest.fixture
def gpu_project(project: Suite) -> Suite:
    """The same on a simulated GPU."""
    project.write("conftest.py", SIMULATED)
    commit(project.path)
    return project


def with_hog(project: Suite, folder: str = ".") -> str:
    """A test of one kernel alone: its file's name."""
    (project.path / "test_suite.py").unlink()
    project.write(f"{folder}/hog.cu", HOG)
    project.write(f"{folder}/test_hog.py", hog_test())
    return f"{folder}/test_hog.py"


def outcome(result: pytest.RunResult) -> dict[str, int]:
    return {name: count for name, count in result.parseoutcomes().items() if name != "warnings"}


# --- by machine code ---------------------------------------------------------------------------------


def test_same_tree_on_both_sides_is_named(project: Suite, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.delenv("CI")
    assert project.run(*STATIC, "--update-baselines=all").ret == 0
    before = command("baselines")
    assert before[0] == 0
    result = project.run(*AGAINST)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*against HEAD*", "* is checked out here, and no tracked file is changed: *"])
    result.stdout.no_fnmatch_line("*NEW*")
    assert command("baselines") == before
    assert command("baselines", "mv", "test_suite.py::test_other", "test_suite.py::test_moved")[0] == 0


def test_gain_over_the_merge_base_makes_no_baseline_stale(project: Suite) -> None:
    fast = (project.path / "work.cu").read_text().replace("extern", "// with double\nextern")
    project.write("work.cu", fast.replace("1.5f", "1.5"))
    commit(project.path)
    git(project.path, "checkout", "-q", "-b", "branch")
    project.write("work.cu", fast)
    commit(project.path)
    result = project.run(*STATIC, "--gpuperf-against=merge-base:main")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*  BETTER  on sm_90 (static)", "    instructions: fp64 * -> 0"])
    result.stdout.no_fnmatch_line("*baseline is stale*")


def test_spill_is_red_with_its_figures(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkouts of a cache folder in the project are none of its tests."""
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(project.path / "cache"))
    project.write(".gitignore", "__pycache__\n.gpuperf\ncache\n")
    name = with_hog(project)
    commit(project.path)
    project.write(name, hog_test(SPILL))
    result = project.run(*AGAINST)
    assert (result.ret, outcome(result)) == (1, {"failed": 1})
    result.stdout.fnmatch_lines(["*WORSE*", "*spill*0 -> *"])
    result.stdout.no_fnmatch_line("*--update-baselines*")
    result.stdout.no_fnmatch_line("*is checked out here*")


@pytest.mark.parametrize("options", ["-n 0", "-n2 --dist loadfile", "--dtype half --quick"])
def test_options_that_the_other_side_lacks_are_left_out_there(project: Suite, options: str) -> None:
    """Its Python has no pytest-xdist, and its conftest none of the options that the change adds."""
    python = project.path / "python"
    project.write("python", f'#!/bin/sh\nexec {sys.executable} "$@" -p no:xdist\n')
    python.chmod(0o755)
    project.write("conftest.py", "def pytest_addoption(parser):\n    parser.addoption('--dtype')\n"
                  "    parser.addoption('--quick', action='store_true')\n")  # fmt: skip
    result = project.run(*AGAINST, f"--gpuperf-against-env={python}", *options.split())
    assert (result.ret, outcome(result)) == (0, {"static": 3}), result.stdout.str()


def test_another_environment_runs_the_same_working_tree(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uncommitted, and without a worktree: what spills here alone is red, and the packages that differ are named."""
    project.write(with_hog(project), hog_test("__import__('os').environ.get('CHOSEN', '').split()"))
    for version in "12":  # of two versions the first one on the path is imported
        project.write(f"{version}/a-{version}.dist-info/METADATA", f"Name: a\nVersion: {version}\n")
    packages = f"{project.path}/1:{project.path}/2:$PYTHONPATH"
    project.write("env/bin/python", f'#!/bin/sh\nunset CHOSEN\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    (project.path / "env/bin/python").chmod(0o755)
    compared = (*STATIC, "--gpuperf-against-env=env")
    result = project.run(*compared)
    assert (result.ret, outcome(result)) == (0, {"static": 1}), result.stdout.str()
    result.stdout.fnmatch_lines(["environments: a 1 -> none"])
    monkeypatch.setenv("CHOSEN", "-maxrregcount=32")
    result = project.run(*compared, "-n", "1")
    assert (result.ret, outcome(result)) == (1, {"failed": 1}), result.stdout.str()
    words = "*spill*0 -> *", "*this working tree in */env/bin/python*", "*-against-env=*env/bin/python *--lf"
    result.stdout.fnmatch_lines(["*WORSE*", *words])
    assert project.run(*compared, "--gpuperf-against=HEAD").ret == 0  # a relative path, and HEAD has no such test
    for text in ("#!/bin/sh\nexit 1\n", "#!/bin/sh\necho 5\n", "no program"):
        project.write("env/bin/python", text)
        assert "env/bin/python does not run as a Python: " in project.run(*compared).stderr.str()


def test_selection_is_that_of_both_sides(project: Suite) -> None:
    project.edit("work.cu", "x * 1.5f", "x * 1.5f + b[i]")
    result = project.run(*AGAINST, "test_suite.py::test_work", "-k", "1024")
    assert outcome(result) == {"static": 1, "deselected": 1}
    result.stdout.fnmatch_lines(["*SAME*"])
    result.stdout.no_fnmatch_line("*MISSING*")


def test_loss_is_red_behind_a_link_and_beside_pytest_s_root(project: Suite) -> None:
    name = with_hog(project, "tests")
    project.write("conf/pytest.ini", "[pytest]\n")
    (project.path / "t").symlink_to("tests")
    commit(project.path)
    project.write(name, hog_test(SPILL))
    result = project.run(*AGAINST, "-c", "conf/pytest.ini", "t")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*WORSE*"])


def test_path_in_addopts_is_of_its_own_revision(project: Suite) -> None:
    """What a change leaves out by one is named, as where testpaths leaves it out."""
    name = with_hog(project)
    project.write("test_other.py", hog_test(name="other"))
    commit(project.path)
    project.write(name, hog_test(SPILL))
    project.write("pytest.ini", "[pytest]\naddopts = test_other.py\n")
    result = project.run(*AGAINST, "-n", "2")
    assert result.ret == 0
    assert "partial run: it left out 1 of 2 tests that " in result.stdout.str()
    assert result.stdout.str().count("comparing with") == 1


# --- what only one side has ----------------------------------------------------------------------------


def test_what_only_one_side_has_is_new_or_gone_and_passes(project: Suite) -> None:
    """Also a second kernel of a test that ends static only there."""
    project.write("third.cu", (project.path / "other.cu").read_text().replace("other", "third").replace("2.0f", "3.0f"))
    third = 'third = cuda_kernel("third.cu", "third")\n    gpuperf(third.launch(grid=2, block=256, args=(a, b, 512)))'
    project.edit("test_suite.py", "    assert result.time_ns > 0\n", f"    {third}\n")
    project.edit("test_suite.py", "def test_other(", "def test_another(")
    project.edit("test_suite.py", '= cuda_kernel("other.cu", "other")', '= cuda_kernel("third.cu", "third")')
    result = project.run(*AGAINST)
    assert result.ret == 0, result.stdout.str()
    gone = "MISSING here, only in *: test_suite.py::test_other"
    result.stdout.fnmatch_lines([gone, "3 new workloads without a counterpart in HEAD"])


def test_loss_is_not_hidden_by_a_new_name(project: Suite) -> None:
    name = with_hog(project)
    commit(project.path)
    project.write(name, hog_test(name="hag"))
    green = project.run(*AGAINST)
    assert green.ret == 0, green.stdout.str()
    green.stdout.fnmatch_lines(["* 1 UNCHANGED"])
    green.stdout.no_fnmatch_line("*MISSING*")
    (project.path / name).rename(project.path / "test_hag.py")
    project.write("test_hag.py", hog_test(SPILL))
    red = project.run(*AGAINST)
    assert red.ret == 1
    red.stdout.fnmatch_lines(
        ["hog  NOT-COMPARABLE  on sm_90*", "*it has the kernel of test_hog.py::test_hog [[]hog], which is missing, "
         "with other machine code: rename it in its own commit"]
    )  # fmt: skip
    red.stdout.no_fnmatch_line("*gpuperf baselines mv*")


def test_renamed_kernel_is_the_same_and_tests_that_do_not_reach_theirs_are_missing(project: Suite) -> None:
    project.edit("other.cu", "void other(", "void another(")
    project.edit("test_suite.py", 'cuda_kernel("other.cu", "other")', 'cuda_kernel("other.cu", "another")')
    project.edit(
        "test_suite.py", "gpuperf, size):\n", "gpuperf, size):\n    size < 2000 or pytest.skip('later')\n    return\n"
    )
    result = project.run(*AGAINST)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["* 1 UNCHANGED*"])
    said = result.stdout.str()
    assert "NOT-MEASURED on sm_90: its test did not reach it: test_suite.py::test_work[1024]" in said
    assert "its test was skipped, or failed as expected: test_suite.py::test_work[2048] (later)" in said
    assert "gpuperf baselines" not in said


# --- what did not run there ------------------------------------------------------------------------------

THERE = {
    "test_fails.py": (hog_test(name="a").replace("    kernel", "    assert False, 'unready'\n    kernel"),
                      "its test fails there: AssertionError: unready"),
    "test_xfails.py": ("import pytest\n@pytest.mark.xfail(reason='bug 7')\n"
                       + hog_test(name="b").replace("    kernel", "    assert False\n    kernel"),
                       "its test was expected to fail there, and did: bug 7"),
    "test_skips.py": (f"import pytest\n@pytest.mark.skip(reason='no GPU')\n{hog_test(name='g')}",
                      "its test is skipped there: no GPU"),
    "test_old.py": ("import pytest\npytest.skip('too old', allow_module_level=True)\n",
                    "its file skips itself there: too old"),
    "test_imports.py": ("import nothing_of_that_name\n",
                        "its file could not be collected there: ModuleNotFoundError: No module named 'nothing_of"),
    "sub/test_below.py": (hog_test(name="c"), "its file could not be collected there: RuntimeError: broken"),
    "test_slow.py": (f"import pytest\n@pytest.mark.slow\n{hog_test(name='d')}", "left out there, by settings or hooks"),
    "test_ignored.py": (hog_test(name="e"), "settings or conftests there leave it out"),
    "test_leaves.py": (f"import pytest\n{hog_test(name='f')}".replace(
        "    kernel", "    pytest.exit('enough', returncode=0)\n    kernel"),
        "the other process has ended (pytest exit status 0)"),
}  # fmt: skip
"""Files of the revision, and what is said of their tests."""


def test_what_could_not_run_there_is_not_comparable(project: Suite) -> None:
    (project.path / "test_suite.py").unlink()
    for name, (text, _) in THERE.items():
        project.write(name, text)
    project.write("sub/conftest.py", "raise RuntimeError('broken')\n")
    project.write("conftest.py", "collect_ignore = ['test_ignored.py']\n")
    project.write("pytest.ini", "[pytest]\naddopts = -m 'not slow'\nmarkers = slow\n")
    commit(project.path)
    for name in ("sub/conftest.py", "conftest.py", "pytest.ini"):
        (project.path / name).unlink()
    for number, name in enumerate(THERE):
        project.write(name, hog_test(name="abgyxcdef"[number]))
        project.write(str(Path(name).parent / "hog.cu"), HOG)
    result = project.run(*AGAINST)
    assert result.ret == 1
    said = " ".join(result.stdout.str().split())
    assert f"{len(THERE)} workloads: {len(THERE)} NOT-COMPARABLE" in said
    assert [words for _, words in THERE.values() if words not in said] == []


ENDED = "the other process has ended (pytest exit status"
EXITS = "def pytest_itemcollected():\n    import pytest\n    pytest.exit('enough', returncode=0)\n"
KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
BROKEN = "raise RuntimeError('not today')\n"


@pytest.mark.parametrize(
    ("conftest", "said"),
    [(EXITS, f"{ENDED} 0)*"), (KILLED, f"{ENDED} -9)*"), (BROKEN, "*not today*")],
    ids=["exit", "killed", "broken"],
)
def test_process_that_comes_to_no_test_is_an_error_of_the_run(project: Suite, conftest: str, said: str) -> None:
    project.write("conftest.py", conftest)
    commit(project.path)
    project.write("conftest.py", "")
    result = project.run(*AGAINST)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "its tests cannot run: " in result.stderr.str()
    result.stderr.fnmatch_lines([f"*{said}"])


def test_unknown_revision_is_a_usage_error(project: Suite) -> None:
    result = project.run(*STATIC, "--gpuperf-against=nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--gpuperf-against=nowhere: git knows no revision 'nowhere'*"])


# --- with a simulated GPU ----------------------------------------------------------------------------

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


def test_unchanged_code_is_timed_and_not_paired(gpu_project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The revision is done with the GPU when a test here takes it."""
    monkeypatch.setenv("ENDED", str(gpu_project.path.parent / f"{gpu_project.path.name}-ended"))
    gpu_project.write("test_times.py", ROUNDS)
    gpu_project.write("test_turns.py", IN_TURN)
    commit(gpu_project.path)
    result = gpu_project.run(*ON_GPU)
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
    result = gpu_project.run(*ON_GPU, "--gpuperf-open=fail")
    assert (result.ret, outcome(result)) == (1, {"passed": 3, "failed": 2}), result.stdout.str()
    result.stdout.fnmatch_lines(["6 workloads: 1 SLOWER, 1 NOT-COMPARABLE, 3 SAME, 1 UNCHANGED"])
    said = sections(result)
    for words in ("second  SLOWER", "in two processes", "Compared with "):
        assert words in said["rounds"]
    for words in ("argument 1 was float32[1024] and is float32[512]", "change the arguments in a commit of their own"):
        assert words in said["arguments"]
    assert not [test for test in said if "--update-baselines" in said[test].partition("\n=")[0]]
