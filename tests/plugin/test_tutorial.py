"""The tutorial does what it says, step by step and without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "first-regression.md").read_text(encoding="utf-8")
RECORD = ("--update-baselines", "--gpuperf-arch=sm_80,sm_90")


def shown(beginning: str) -> list[str]:
    """The lines of the page's block that begins so."""
    blocks: list[str] = re.findall(r"^```\w*\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if block.startswith(beginning)]
    return [line for line in found.splitlines() if line]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The reader's folder after step 2."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    pytester.makepyfile(test_blend=example)
    return pytester


def test_every_step_ends_as_the_page_says(project: pytest.Pytester) -> None:
    assert f"pytest {' '.join(RECORD)}\n" in PAGE
    project.runpytest_inprocess().stdout.fnmatch_lines(["test_blend.py c*", "*1 static only*"])
    recorded = project.runpytest_inprocess(*RECORD).stdout
    for line in shown("baseline  "):
        assert line in recorded.str()
    project.runpytest_inprocess("--gpuperf").stdout.fnmatch_lines(["*blend*UNCHANGED*"])

    test = project.path / "test_blend.py"
    right = test.read_text(encoding="utf-8")
    test.write_text(right.replace("0.25f", "0.25"), encoding="utf-8")
    red = project.runpytest_inprocess("--gpuperf")
    assert red.ret == 1
    assert "\n".join(shown("blend  WORSE")) in red.stdout.str()
    assert "cause: double-precision literals" in red.stdout.str()

    test.write_text(right, encoding="utf-8")
    assert project.runpytest_inprocess("--gpuperf").ret == 0
