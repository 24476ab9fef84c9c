"""Machine code of baselines that is not theirs, or that a change brought along: never launched or believed under CI."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from evidence_tree import read_evidence, write_evidence
from git_samples import commit, git
from suite_under_test import FILES, KERNEL, RECORD, Command, Suite, baselines_of

from pytest_gpuperf.baselines.cubin_store import compressed
from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource

NODE = "test_suite.py::test_work[1024]"
FORGED, CHANGED = "-DSTEPS=200", "-DSTEPS=150"
SLOW = KERNEL.replace("work", "slow").replace("STEPS", "1430")
"""Another kernel of the same cubin, that takes as long as ``work`` does in a change."""
COUNTING = """
class Counting(SimulatedGpu):
    def load(self, binary):
        import hashlib, pathlib
        kernel, name = super().load(binary), hashlib.sha256(binary.cubin).hexdigest()
        def note(what):
            if binary.name in ("work", "slow", "other"):  # not the plugin's own
                with (pathlib.Path(__file__).parent / "noted").open("a") as file:
                    file.write(f"{what} {name}\\n")
        def run(*given, **more):
            note("launch")
            return kernel(*given, **more)
        note("load")
        return run

def work("""


@pytest.fixture
def project(gpu_suite: Suite, shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Under CI, a repository whose branch main has the baselines; its GPU writes down what it loads and launches."""
    gpu_suite.write("work.cu", KERNEL + SLOW)
    files = {**FILES, "work.cu": KERNEL + SLOW}
    shutil.copytree(baselines_of(shared_folder / "trusted", files, *RECORD), gpu_suite.path / "baselines")
    gpu_suite.edit("conftest.py", "def work(", COUNTING)
    gpu_suite.edit("conftest.py", "return SimulatedGpu(", "return Counting(")
    gpu_suite.write(".gitignore", "__pycache__\n.gpuperf\nnoted\n")
    commit(gpu_suite.path)
    monkeypatch.setenv("CI", "true")
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    return gpu_suite


@pytest.fixture
def change(project: Suite, shared_folder: Path) -> Suite:
    """A branch that makes ``work`` slower and brings a record along of code that is slower still.

    Hash, cubin and times agree with each other: nothing is wrong with it but where it comes from.
    """
    files = {**FILES, "work.cu": KERNEL + SLOW}
    files["test_suite.py"] = files["test_suite.py"].replace("-DSTEPS=100", FORGED)
    git(project.path, "checkout", "-q", "-b", "change")
    forgery = baselines_of(shared_folder / "forgery", files, *RECORD, CI="")
    shutil.copytree(forgery, project.path / "baselines", dirs_exist_ok=True)
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    commit(project.path)
    return project


def cubin_on_record(suite: Suite) -> str:
    return str(read_evidence(suite.times)["tests"]["test_work[1024]"]["work"]["cubin"])


def noted(suite: Suite) -> dict[str, set[str]]:
    """SHA-256 of the cubins that were loaded, and of those that were launched."""
    lines = [line.split() for line in (suite.path / "noted").read_text().splitlines()]
    return {what: {name for one, name in lines if one == what} for what in ("load", "launch")}


def was_launched(suite: Suite) -> bool:
    """The cubin on record; what is not launched is not loaded."""
    both = {cubin_on_record(suite) in names for names in noted(suite).values()}
    assert len(both) == 1
    return both.pop()


def test_brought_cubin_is_launched_outside_of_ci_alone(change: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under CI nothing is comparable then, and that is red, whatever the times on record say."""
    result = change.run("--gpuperf", NODE)
    assert not was_launched(change)
    result.assert_outcomes(failed=1)
    head = git(change.path, "rev-parse", "main")[:12]
    result.stdout.fnmatch_lines([
        "work  NOT-COMPARABLE  on simulated-gpu (time)  x0.81?  10.* us -> 8.* us",
        "*against the recorded time",
        f"    its baseline's cubin came with this change (it is not in {head} of main), and CI launches no such "
        "machine code: compare by --gpuperf-against=merge-base:BRANCH; *",
    ])  # fmt: skip
    revision = change.run("--gpuperf", "--gpuperf-against=merge-base:main", NODE)
    revision.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    revision.stdout.no_fnmatch_line("*launches no such machine code*")
    assert not was_launched(change)
    monkeypatch.delenv("CI")
    change.run("--gpuperf", NODE)
    assert was_launched(change)


def test_cubin_of_the_base_is_launched_for_a_change(project: Suite) -> None:
    git(project.path, "checkout", "-q", "-b", "change")
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    commit(project.path)
    result = project.run("--gpuperf", NODE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert was_launched(project)


def test_folder_elsewhere_is_launched_as_far_as_the_default_branch_pins_it(project: Suite, command: Command) -> None:
    """Outside of the repository; what is pinned is what is there, before any test runs."""
    folder = project.path.parent / f"{project.path.name}-data"
    shutil.move(project.path / "baselines", folder)
    commit(project.path)
    project.edit("test_suite.py", "-DSTEPS=100", CHANGED)
    gate = ("--gpuperf", f"--gpuperf-baselines={folder}", NODE)
    project.run(*gate).stdout.fnmatch_lines(["*its baseline's cubin came with this change (it is not in *"])
    pin = ["baselines", "pin", "--baselines", str(folder)]
    status, out, _ = command(*pin, folder=".gpuperf")  # below pytest's root
    assert (status, out.endswith(f" files of {folder}\nCommit ../baselines.sha256.\n")) == (0, True)
    subprocess.run(["sha256sum", "--check", "--quiet", project.path / "baselines.sha256"], cwd=folder, check=True)
    project.run(*gate).stdout.fnmatch_lines(["*its baseline's cubin came with this change (it is not in *"])
    commit(project.path)
    project.run(*gate).stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    (folder / "manifest.json").unlink()
    refused = project.run(*gate)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines([f"ERROR: baselines.sha256 pins another state of {folder}: manifest.json is missing*"])


def swap(suite: Suite) -> None:
    """Name a cubin of the candidate's speed in one record, and another kernel of its own cubin in the second."""
    source = KernelSource(text=KERNEL + SLOW, name="work", options=("-DSTEPS=1430",))
    cubin = compile_kernel(source, "sm_90").cubin
    sha256 = hashlib.sha256(cubin).hexdigest()
    path = cubin_path(suite.path / "baselines", sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compressed(cubin))
    content = read_evidence(suite.times)
    content["tests"]["test_work[1024]"]["work"]["cubin"] = sha256
    content["tests"]["test_work[2048]"]["work"]["symbol"] = "slow"
    write_evidence(suite.times, content)


@pytest.mark.parametrize("flags", [("--gpuperf",), ("--gpuperf", "--gpuperf-time=all")], ids=["changed", "unchanged"])
def test_swapped_cubin_is_not_loaded_and_the_run_is_red(project: Suite, flags: tuple[str, ...]) -> None:
    own = cubin_on_record(project)
    swap(project)
    if len(flags) == 1:
        project.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=1430")
        own = cubin_on_record(project)  # the candidate's
    result = project.run(*flags, "-k", "work")
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    for size in (1024, 2048):
        refused = f"the recorded machine code of test_suite.py::test_work[{size}] [work] is refused: "
        assert refused in text
    assert "its code has the hash " in text
    result.stdout.fnmatch_lines(["*from version control*, or record the workload again with --update-baselines=all*"])
    assert noted(project)["load"] == {own}
    assert "work  NOT-COMPARABLE  on simulated-gpu (time)" in text


def test_code_among_baselines_is_never_collected(recorded: Suite) -> None:
    elsewhere = recorded.path.parent / f"{recorded.path.name}-elsewhere"
    elsewhere.mkdir()
    code = f"open({str(recorded.path / 'ran')!r}, 'w').close()\ndef test_it(): pass\n"
    (elsewhere / "test_hidden.py").write_text(code)
    (recorded.path / "baselines/cubins/conftest.py").write_text(code)
    (recorded.path / "baselines/cubins/test_hidden.py").write_text(code)
    (recorded.path / "baselines/sm_89").symlink_to(elsewhere)
    for flags in ((), ("--gpuperf",)):
        result = recorded.run(*flags)
        assert "test_hidden" not in result.stdout.str()
        assert result.ret == 0
        assert not (recorded.path / "ran").exists()
