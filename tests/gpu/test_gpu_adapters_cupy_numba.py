"""Kernels of the installed CuPy and Numba on a real GPU: as by their own launches, equal beside themselves, or red.

The suites in ``adapter_suites`` are for repeated runs too: copy one as ``test_*.py`` into a folder of its own, record
it with ``pytest --update-baselines``, and run ``pytest --gpuperf --gpuperf-time=all`` there thirty times.
"""

from __future__ import annotations

import importlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

pytestmark = pytest.mark.gpu

SUITES = Path(__file__).parent / "adapter_suites"
UPDATE = ("--update-baselines", "--gpuperf-disturbed")
STEPS = "STEPS = 40"


def need_numba() -> None:
    for name in ("numba", "numba.cuda"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a NumPy that it does not know yet
                importlib.import_module(name)
        except ImportError as problem:
            pytest.skip(f"needs Numba: {problem}")
    if not hasattr(numpy, "row_stack"):  # Numba looks it up when it first compiles
        pytest.skip(f"needs a Numba that knows NumPy {numpy.__version__}: it has no row_stack")


@pytest.fixture(scope="module")
def recordings() -> dict[str, Path]:
    """Folders that hold a suite with its baselines, by library: each is recorded once."""
    return {}


@pytest.fixture(params=["cupy", "numba"])
def suite(request: pytest.FixtureRequest, pytester: pytest.Pytester, recordings: dict[str, Path]) -> Path:
    """A suite of kernels of one library, with its baselines."""
    if request.param == "numba":
        need_numba()
    text = (SUITES / f"{request.param}_suite.py").read_text(encoding="utf-8")
    path: Path = pytester.makepyfile(**{f"test_{request.param}": text})
    if request.param in recordings:
        shutil.copytree(recordings[request.param], pytester.path / "baselines")
    else:
        outcomes = pytester.runpytest_subprocess(*UPDATE).parseoutcomes()
        assert set(outcomes) <= {"passed", "warnings"}, outcomes
        kept = request.getfixturevalue("tmp_path_factory").mktemp("recorded") / "baselines"
        recordings[request.param] = Path(shutil.copytree(pytester.path / "baselines", kept))
    return path


def verdicts(pytester: pytest.Pytester, *flags: str) -> dict[str, list[str]]:
    """Verdicts on time of a gated run, by test."""
    report = pytester.path / "report.json"
    pytester.runpytest_subprocess("--gpuperf", f"--gpuperf-report={report}", *flags)
    tests: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["tests"]
    works = [work for test in tests for work in test.get("workloads", ())]
    return {
        work["key"]["test"]: [one["verdict"] for one in work.get("judgements", ()) if one["kind"] == "time"]
        for work in works
    }


def test_kernels_do_as_by_their_library(cuda_device: Any, pytester: pytest.Pytester, suite: Path) -> None:
    found = verdicts(pytester, "--gpuperf-time=all")
    assert len(found) >= 4
    assert all(found.values())
    reds = {test: one for test, one in found.items() if {"SLOWER", "WORSE"} & set(one)}
    assert reds == {}


def test_a_kernel_that_does_more_is_paired_and_red(cuda_device: Any, pytester: pytest.Pytester, suite: Path) -> None:
    text = suite.read_text(encoding="utf-8")
    assert STEPS in text
    suite.write_text(text.replace(STEPS, "STEPS = 400"), encoding="utf-8")
    decay = "raw_kernel" if suite.stem == "test_cupy" else "decay"
    result = pytester.runpytest_subprocess("--gpuperf", "-k", decay)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"decay  SLOWER  on .* \(time\)  x\d+\.\d+ ", r" .* paired, \d+\+\d+ blocks"])
