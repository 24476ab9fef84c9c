"""A callable whose code changed since its record is paired with the record's commit, and told from one that did not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import CALLABLE, FILES, RECORD, SIMULATED, Suite, baselines_of

NOTES_PARTNERS = """

def pytest_configure(config):
    if task_of(config).get("type") == "revision":
        __import__("pathlib").Path(__import__("os").environ["PARTNERS"]).touch()
"""
PROJECT = {
    **FILES, ".gitignore": "__pycache__\n.gpuperf\n", "steps_of_work.py": "STEPS = 300\n", "unused.py": "",
    "test_suite.py": "from steps_of_work import STEPS\n" + CALLABLE.format(steps="(200, STEPS, 200)", more=""),
    "test_other.py": "def test_nothing():\n    pass\n", "README.md": "", ".hidden/ci.yml": "",
    "conftest.py": SIMULATED + NOTES_PARTNERS,
}  # fmt: skip
"""A callable, in a repository with other files."""


@pytest.fixture
def recorded(suite: Suite, shared_folder: Path) -> Suite:
    """The callable on record."""
    baselines = baselines_of(shared_folder / "callables", PROJECT, *RECORD, committed=True)
    shutil.copytree(baselines.parent, suite.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("done"))
    commit(suite.path, "Baselines")
    return suite


def gated(suite: Suite, *flags: str) -> tuple[int, str]:
    result = suite.run("--gpuperf", "-rA", *flags)
    return int(result.ret), result.stdout.str()


@pytest.fixture
def partner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that the process of another revision makes when it starts."""
    monkeypatch.setenv("PARTNERS", str(tmp_path / "partner"))
    return tmp_path / "partner"


def test_arguments_are_for_the_callable_and_a_launch_has_its_own(gpu_suite: Suite) -> None:
    asserting = "def steps(more, *, times):\n        assert (more, times) == (2, 1)"
    text = CALLABLE.format(steps="(100,)", more="").replace("def steps():", asserting)
    gpu_suite.write("test_suite.py", text.replace("gpuperf(steps,", "gpuperf(steps, 2, times=1,"))
    gpu_suite.run().assert_outcomes(passed=1)
    gpu_suite.edit("test_suite.py", "gpuperf(steps, 2, ", "gpuperf(launches[0], ")
    gpu_suite.run().stdout.fnmatch_lines(["*gpuperf takes no times with a launch*"])


def test_small_loss_is_red_by_pairs_of_processes(recorded: Suite, partner: Path) -> None:
    recorded.write("steps_of_work.py", "STEPS = 330\n")
    commit(recorded.path, "Slower")
    status, said = gated(recorded)
    assert status == 1, said
    assert "steps  SLOWER" in said
    assert "slower, by 4 pairs of processes: x1.03" in said
    assert partner.exists()


@pytest.mark.parametrize("file", ["steps_of_work.py", "other.cu"])
def test_equal_code_after_a_change_is_the_same(recorded: Suite, partner: Path, file: str) -> None:
    """Of Python, or of another file that the test reads."""
    recorded.write(file, (recorded.path / file).read_text() + "\n")
    status, said = gated(recorded)
    assert status == 0, said
    assert "1 SAME, 2 UNCHANGED" in said
    assert partner.exists()


def test_callable_of_unchanged_files_needs_no_other_process(recorded: Suite, partner: Path) -> None:
    for files in ((), ("unused.py", "test_other.py", "README.md", ".hidden/ci.yml", "baselines/gpuperf.toml")):
        for file in files:
            path = recorded.path / file
            recorded.write(file, (path.read_text() if path.exists() else "") + "\n")
        status, said = gated(recorded)
        assert status == 0, said
        assert "3 workloads: 3 UNCHANGED" in said
        assert not partner.exists()


@pytest.mark.parametrize(("steps", "status", "lines"), [
    (1000, 1, ["steps  SLOWER *", "*slower than recorded by more than 10 %, in two processes; not paired: *"]),
    (320, 0, ["*steps  INCONCLUSIVE *", "*x1.02* of its recorded time: nothing is proven below x1.10; not *"]),
])  # fmt: skip
def test_callable_without_history_is_compared_with_its_record(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch, steps: int, status: int, lines: list[str]
) -> None:
    shallow = recorded.path.parent / "shallow"
    shutil.rmtree(shallow, ignore_errors=True)
    git(recorded.path, "clone", "-q", "--depth=1", f"file://{recorded.path}", str(shallow))
    (shallow / "steps_of_work.py").write_text(f"STEPS = {steps}\n")
    monkeypatch.chdir(shallow)
    result = recorded.run("--gpuperf", "-rA", "--rootdir=.")
    assert result.ret == status, result.stdout.str()
    result.stdout.fnmatch_lines(lines)
    assert "fetch-depth: 0" in result.stdout.str()
    assert "gpuperf-budget" not in result.stdout.str()


def test_lost_overlap_is_slower_and_needs_cupti(suite: Suite) -> None:
    """Times of both sides are elapsed ones then, whatever the other one's test asks for, and the sum is shown too."""
    for name, text in (PROJECT | {"conftest.py": SIMULATED.replace("Gpu(impl", "Gpu(overlap=0.6, impl")}).items():
        suite.write(name, text)
    commit(suite.path, "Overlapping")
    suite.run(*RECORD).stdout.re_match_lines([r".* us ±\S+ %, elapsed [\d.]+ us"])
    commit(suite.path, "Baselines")
    suite.edit("test_suite.py", "gpuperf(steps, ", "gpuperf(steps, measure=('elapsed',), ")
    suite.run("--gpuperf", "-v").stdout.re_match_lines([r"  steps +.* us ±\S+ % elapsed, sum [\d.]+ us .* SAME"])
    suite.edit("conftest.py", "overlap=0.6", "overlap=0.96")
    result = suite.run("--gpuperf")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([
        r"steps  SLOWER  on simulated-gpu \(time\)", r".*by 2 pairs of processes: x1\.(59|60)",
        r" +the sum of its kernels and copies is x(0\.99|1)",
    ])  # fmt: skip
    suite.edit("conftest.py", "overlap=0.96, ", "")
    refused = "*BadArgument: measure='elapsed' needs the CUPTI timer, which sees all streams: pip install *"
    suite.run("--gpuperf").stdout.fnmatch_lines([refused])
