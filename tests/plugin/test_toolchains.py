"""A team with several compilers: each has its own record of a kernel, and an update says which are behind."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from evidence_tree import read_evidence, write_evidence
from suite_under_test import HOG

from pytest_gpuperf.compile.nvcc import toolchain

ARCH = "--gpuperf-arch=sm_90"
GATE = ("--gpuperf", ARCH, "--gpuperf-open=fail")
OTHER = "nvrtc 12.9.86"
TEST = """
def test_hog(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog", options=[])
    a, b = gpu.random(4096, seed=1), gpu.empty(32)
    gpuperf(kernel.launch(grid=1, block=32, args=(a, b)))
"""


def evidence(suite) -> Path:
    return Path(suite.path, "baselines/sm_90/test_suite.jsonl")


def declare(suite, *names: str) -> None:
    path = suite.path / "baselines/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "toolchains": sorted(names)}))


def spill(suite) -> None:
    suite.edit("test_suite.py", "options=[]", 'options=["-maxrregcount=32"]')


@pytest.fixture
def records(suite):
    """What the compiler at hand has on record of the kernel before it spills, and after that was accepted."""
    suite.write("hog.cu", HOG)
    suite.write("test_suite.py", TEST)
    suite.run("--update-baselines", ARCH)
    before = read_evidence(evidence(suite))["toolchains"][toolchain()]
    spill(suite)
    suite.run("--update-baselines", ARCH)
    after = read_evidence(evidence(suite))["toolchains"][toolchain()]
    assert before != after
    return before, after


def on_record(suite, **tests) -> None:
    tree = read_evidence(evidence(suite))
    names = {"own": toolchain(), "other": OTHER}
    tree["toolchains"] = {names[which]: copy.deepcopy(records) for which, records in tests.items()}
    write_evidence(evidence(suite), tree)
    declare(suite, OTHER, toolchain())


def test_code_is_held_against_the_record_of_its_own_compiler(suite, records):
    before, after = records
    on_record(suite, own=before, other=after)
    gated = suite.run(*GATE)
    gated.assert_outcomes(failed=1)
    gated.stdout.fnmatch_lines(["hog  WORSE *"])
    on_record(suite, other=after)
    gated = suite.run(*GATE)
    gated.assert_outcomes(failed=1)
    gated.stdout.fnmatch_lines([f"*the baseline was compiled by {OTHER}, this is {toolchain()}: *"])
