"""The tutorial about two branches does what it says, step by step and without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from git_samples import commit, git

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "two-branches.md").read_text(encoding="utf-8")
AGAINST = ("--gpuperf", "--gpuperf-against=main", "--gpuperf-arch=sm_90")


def block(language: str, beginning: str) -> str:
    (found,) = re.findall(rf"^```{language}\n({re.escape(beginning)}.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The reader's folder after step 1, on the branch."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (pytester.path / "scale.cu").write_text(block("cuda", "extern"))
    (pytester.path / "test_scale.py").write_text(block("python", "def test_scale"))
    commit(pytester.path, "Scale")
    git(pytester.path, "checkout", "-q", "-b", "fewer-registers")
    return pytester


def test_every_step_ends_as_the_page_says(project: pytest.Pytester) -> None:
    assert f"pytest {' '.join(AGAINST)}\n" in PAGE
    same = project.runpytest_subprocess(*AGAINST)
    assert same.ret == 0
    same.stdout.fnmatch_lines(["*comparing with * (*Scale)", "*scale*UNCHANGED*"])

    test = project.path / "test_scale.py"
    (changed,) = re.findall(r"^```python\n( +kernel = .*?)\n```", PAGE, re.DOTALL | re.MULTILINE)
    test.write_text(re.sub(r" +kernel = .*", changed, test.read_text()))
    for against in ("main", "merge-base:main"):
        red = project.runpytest_subprocess(*AGAINST[:1], f"--gpuperf-against={against}", *AGAINST[2:])
        assert red.ret == 1
        red.stdout.fnmatch_lines(["scale  WORSE*", "*spill stores 0 -> *", "*cause: register spilling*"])
