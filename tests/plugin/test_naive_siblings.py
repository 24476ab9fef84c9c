"""``--naive-siblings``: a test measures naive workloads in the place of optimised ones, and the gate notices."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from suite_under_test import KERNEL, baselines_of

HERE = Path(__file__).parent
SUITE = HERE.parents[1] / "example_suite"

CONFTEST = f"""
import importlib.util, sys
sys.path[:0] = [{str(HERE)!r}, {str(SUITE)!r}]
import pairs, pytest, siblings
from simulated_gpu import SimulatedGpu

def work(a, b, n):
    b[:] = a

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    return SimulatedGpu(implementations={{"work": work}})

siblings.PAIRS = (
    pairs.Pair("suite", "test_both", "fast", "slow", "", "does more"),
    pairs.Pair("suite", "test_both", "slow", "slow", "", "does as much"),
    pairs.Pair("suite", "test_other", "fast", "absent", "", "is not there"),
)
spec = importlib.util.spec_from_file_location("suite_conftest", {str(SUITE / "conftest.py")!r})
suite = importlib.util.module_from_spec(spec)
spec.loader.exec_module(suite)
globals().update({{name: getattr(suite, name) for name in ("gpuperf", "pytest_addoption", "pytest_configure")}})
"""

TEST = """
def measured(cuda_kernel, gpu, gpuperf, **steps):
    a = gpu.random(1024, seed=1)
    runs = []
    for name, count in steps.items():
        b = gpu.empty_like(a)
        kernel = cuda_kernel("work.cu", "work", options=[f"-DSTEPS={count}"])
        launch = kernel.launch(grid=1, block=1024, args=(a, b, 1024))
        runs.append(gpuperf(launch, name=name, check=lambda b=b: gpu.assert_equal(b, a)))
    return [run.time_ns for run in runs]

def test_both(cuda_kernel, gpu, gpuperf):
    fast, slow = measured(cuda_kernel, gpu, gpuperf, fast=100, slow=120)
    assert fast < slow

def test_other(cuda_kernel, gpu, gpuperf):
    measured(cuda_kernel, gpu, gpuperf, fast=100)

def test_without_a_pair(cuda_kernel, gpu, gpuperf):
    measured(cuda_kernel, gpu, gpuperf, fast=100)
"""


FILES = {"work.cu": KERNEL, "test_suite.py": TEST, "conftest.py": CONFTEST, "pytest.ini": ""}


@pytest.fixture
def siblings(suite, shared_folder, monkeypatch):
    """A suite with pairs and their baselines."""
    monkeypatch.setenv("EXAMPLE_SUITE_NAIVE_SIBLINGS", "")  # so that what a run in this process leaves is gone after it
    monkeypatch.delenv("EXAMPLE_SUITE_NAIVE_SIBLINGS")
    for name, text in FILES.items():
        suite.write(name, text)
    shutil.copytree(baselines_of(shared_folder / "siblings", FILES, "--update-baselines"), suite.path / "baselines")
    return suite


def turned(suite, *arguments):
    """The run, and by optimised workload what it left."""
    result = suite.run("--gpuperf", "--siblings-to=turned.json", *arguments)
    left = json.loads((suite.path / "turned.json").read_text())["pairs"]
    return result, {(pair["optimised"], pair["naive"]): pair for pair in left}


def verdicts(pair):
    return {judgement["kind"]: judgement["verdict"] for judgement in pair["judgements"]}


def test_gate_and_nothing_else_fails_a_naive_sibling(siblings):
    result, left = turned(siblings, "--naive-siblings", "-n", "2")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.re_match_lines([r"fast  SLOWER ", r" .* paired, \d+\+\d+ blocks"])  # in a second process as well
    assert "assert fast < slow" not in result.stdout.str()
    assert verdicts(left["fast", "slow"])["time"] == "SLOWER"
    assert verdicts(left["slow", "slow"])["time"] == "UNCHANGED"
    assert left["fast", "absent"]["judgements"] == []
