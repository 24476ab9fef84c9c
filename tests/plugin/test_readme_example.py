"""The README's first test does what the README says, without a GPU as far as that goes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project that consists of the README's first test."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(example.splitlines()) <= 15
    pytester.makepyfile(test_axpy=example)
    return pytester


def test_it_is_recorded_and_then_gated(project):
    assert project.runpytest_inprocess("--update-baselines", "--gpuperf-arch=sm_80,sm_90").ret == 0
    written = {path.name for path in (project.path / "baselines").iterdir() if path.name != ".work"}
    assert written == {"cubins", "manifest.json", "sm_80", "sm_90"}
    result = project.runpytest_inprocess("--gpuperf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*axpy*UNCHANGED*", "*timing needs a GPU*"])


def test_it_fails_when_the_kernel_gets_worse(project):
    project.runpytest_inprocess("--update-baselines", "--gpuperf-arch=sm_90")
    test = project.path / "test_axpy.py"
    spilling = "{ float t[64]; for (int k = 0; k < 64; ++k) t[(k * n) % 64] = x[i]; y[i] += a * t[n % 64]; }"
    test.write_text(test.read_text(encoding="utf-8").replace("y[i] += a * x[i];", spilling), encoding="utf-8")
    result = project.runpytest_inprocess("--gpuperf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["axpy  WORSE  on sm_90 (static)", "*stack frame 0 -> 256 bytes*"])
