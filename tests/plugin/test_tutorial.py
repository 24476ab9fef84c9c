"""The README's first test, both tutorials and the page about migrating do what they say, without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from git_samples import commit, git

ROOT = Path(__file__).parents[2]
README, FIRST, BRANCHES, MIGRATING = (
    (ROOT / page).read_text(encoding="utf-8")
    for page in (
        "README.md", "docs/tutorial/first-regression.md", "docs/tutorial/two-branches.md", "docs/how-to/migrating.md",
    )
)  # fmt: skip


def block(page: str, beginning: str, language: str = r"\w*") -> str:
    """The page's block of code that begins so."""
    (found,) = re.findall(rf"^```{language}\n({re.escape(beginning)}.*?)^```", page, re.DOTALL | re.MULTILINE)
    return str(found)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return pytester


def test_first_test_of_the_readme_is_recorded_and_fails_when_its_kernel_gets_worse(project: pytest.Pytester) -> None:
    example = block(README, "", "python")
    assert len(example.splitlines()) <= 15
    test = project.makepyfile(test_axpy=example)
    assert project.runpytest_inprocess("--update-baselines", "--gpuperf-arch=sm_80,sm_90").ret == 0
    written = {path.name for path in (project.path / "baselines").iterdir() if path.name != ".work"}
    assert written == {"cubins", "manifest.json", "sm_80", "sm_90"}
    result = project.runpytest_inprocess("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*axpy*UNCHANGED*", "*timing needs a GPU*"])
    spilling = "{ float t[64]; for (int k = 0; k < 64; ++k) t[(k * n) % 64] = x[i]; y[i] += a * t[n % 64]; }"
    replace(test, "y[i] += a * x[i];", spilling)
    result = project.runpytest_inprocess("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["axpy  WORSE  on sm_*(static)", "*stack frame 0 -> 256 bytes*"])


def test_every_step_of_the_first_tutorial_ends_as_the_page_says(project: pytest.Pytester) -> None:
    record = ("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    assert f"pytest {' '.join(record)}\n" in FIRST
    test = project.makepyfile(test_blend=block(FIRST, "", "python"))
    project.runpytest_inprocess().stdout.fnmatch_lines(["test_blend.py c*", "*1 static only*"])
    recorded = project.runpytest_inprocess(*record).stdout.str()
    for line in filter(None, block(FIRST, "baseline  ").splitlines()):
        assert line in recorded
    project.runpytest_inprocess("--gpuperf").stdout.fnmatch_lines(["*blend*UNCHANGED*"])
    right = test.read_text(encoding="utf-8")
    replace(test, "0.25f", "0.25")
    red = project.runpytest_inprocess("--gpuperf")
    assert red.ret == 1
    assert "\n".join(filter(None, block(FIRST, "blend  WORSE").splitlines())) in red.stdout.str()
    assert "cause: double-precision literals" in red.stdout.str()
    test.write_text(right, encoding="utf-8")
    assert project.runpytest_inprocess("--gpuperf").ret == 0


def test_every_step_of_the_tutorial_about_branches_ends_as_the_page_says(project: pytest.Pytester) -> None:
    against = ("--gpuperf", "--gpuperf-against=main", "--gpuperf-arch=sm_90")
    assert f"pytest {' '.join(against)}\n" in BRANCHES
    (project.path / "scale.cu").write_text(block(BRANCHES, "extern", "cuda"))
    test = project.makepyfile(test_scale=block(BRANCHES, "def test_scale", "python"))
    commit(project.path, "Scale")
    git(project.path, "checkout", "-q", "-b", "fewer-registers")
    same = project.runpytest_inprocess(*against)
    assert same.ret == 0
    same.stdout.fnmatch_lines(["*comparing with * (*Scale)", "*scale*UNCHANGED*"])
    test.write_text(re.sub(r" +kernel = .*\n", block(BRANCHES, "    kernel = ", "python"), test.read_text()))
    for revision in ("main", "merge-base:main"):
        red = project.runpytest_inprocess(*against[:1], f"--gpuperf-against={revision}", *against[2:])
        assert red.ret == 1
        red.stdout.fnmatch_lines(["scale  WORSE*", "*spill stores 0 -> *", "*cause: register spilling*"])


def test_each_block_of_the_page_about_migrating_is_recorded_and_gated(project: pytest.Pytester) -> None:
    """Of pytest-benchmark, cupyx, Triton and nvbench: as far as that goes without a GPU."""
    blocks = re.findall(r"```python\n(.*?)```", MIGRATING, re.DOTALL)
    assert len(blocks) == 4
    project.makepyfile(**{f"test_block_{number}": text for number, text in enumerate(blocks)})
    flags = ("--gpuperf-arch=sm_90", "-p", "no:cacheprovider")
    recorded = project.runpytest_inprocess("--update-baselines", *flags)
    gated = project.runpytest_inprocess("--gpuperf", *flags)
    for result in (recorded, gated):
        assert result.ret == 0, result.stdout.str()
        assert " failed" not in result.stdout.str()
    gated.stdout.fnmatch_lines(["* workloads: 6 UNCHANGED, 1 not judged"])
