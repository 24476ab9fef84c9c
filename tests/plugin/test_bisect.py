"""``gpuperf bisect`` on histories of real kernels; its search is in tests/unit/cli/test_bisection.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_samples import commit, git
from suite_under_test import FILES, HOG, Command, hog_test

SPILLING = "['-maxrregcount=32']"


class History:
    """A repository of one kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []

    def add(self, *, options: str = "[]", source: str = HOG, more: str = "") -> None:
        (self.folder / "hog.cu").write_text(source)
        (self.folder / "test_hog.py").write_text(hog_test(options) + more)
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


def test_spill_is_found(history: History, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a folder that old commits lack, beside a test that the good end lacks and the cache's flags in the ini."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")  # with pytest's own plugins
    (history.folder / "pytest.ini").write_text("[pytest]\ngpuperf_arch = sm_90\naddopts = --lf --sw\n")
    history.add()
    (deep := history.folder / "docs" / "plots").mkdir(parents=True)
    (deep / "made.txt").touch()
    other = hog_test(name="other").replace("'hog', options", "'other', options")
    for number, options in enumerate(("[]", SPILLING), 1):
        source = f"// {number}\n{HOG}".replace("0.25f", "0.125f") + HOG.replace("hog", "other")
        history.add(options=options, source=source, more=other)
    (history.folder / "test_hog.py").write_text("edited, and not looked at")
    monkeypatch.chdir(deep)
    status, out, err = command("bisect", "--good", history.commits[0], "test_hog.py")
    assert (status, err) == (0, "")
    assert f"{history.commits[2][:12]} (" in out
    assert "State 2) made it slower" in out
    assert "cause: register spilling" in out
    assert git(history.folder, "status", "--porcelain") == "M test_hog.py"


def test_flag_that_a_commit_s_pytest_refuses_is_named(history: History, command: Command) -> None:
    history.add()
    (history.folder / "pytest.ini").write_text("[pytest]\naddopts = --no-such-flag\n")
    history.add()
    status, out, err = command("bisect", "--good", history.commits[0], "test_hog.py")
    assert status == 1
    assert f"{history.commits[1][:12]}  undecided  unrecognized arguments: --no-such-flag" in out
    assert "cannot be judged against the good one" in err


def test_times_decide(history: History, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel that takes longer by its steps, and has no machine code that is worse."""
    for steps in (100, 200):
        for name, text in FILES.items():
            (history.folder / name).write_text(text.replace("-DSTEPS=100", f"-DSTEPS={steps}"))
        history.commits.append(commit(history.folder, f"With {steps} steps"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    status, out, err = command("bisect", "--good", history.commits[0], "test_suite.py::test_work[1024]")
    assert (status, err) == (0, "")
    assert "With 200 steps) made it slower" in out
    assert "SLOWER x1." in out
