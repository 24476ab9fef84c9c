"""A gated run reads no machine code that its baselines have on record; an update reads all that it records."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence, write_evidence

KERNELS = """
template <int N> __global__ void add(float* data) { data[threadIdx.x] += N; }
"""
TEST = """
def test_add(cuda_kernel):
    cuda_kernel("add.cu", "add<1>")

def test_add_again(cuda_kernel):
    cuda_kernel("add.cu", "add<1>")
"""
ARCHS = "--gpuperf-arch=sm_80,sm_90"


@pytest.fixture
def read(monkeypatch):
    """Architectures that nvdisasm ran for."""
    from pytest_gpuperf.compile.machine_code import sass

    real, archs = sass.run_nvdisasm, []

    def run_nvdisasm(arch, code):
        archs.append(arch)
        return real(arch, code)

    monkeypatch.setattr(sass, "run_nvdisasm", run_nvdisasm)
    return archs


@pytest.fixture
def cold(suite, monkeypatch, read):
    """Recorded baselines; each run begins with an empty cache."""
    suite.write("add.cu", KERNELS)
    suite.write("test_suite.py", TEST)
    folder = Path(suite.path, "cache")
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(folder))
    suite.run("--update-baselines", ARCHS)

    def run(*arguments):
        shutil.rmtree(folder)
        read.clear()
        return suite.run(*arguments, ARCHS)

    return run


def change_record(suite, test, **figures):
    """Of one test on sm_80."""
    path = Path(suite.path, "baselines/sm_80/test_suite.jsonl")
    content = read_evidence(path)
    for tests in content["toolchains"].values():
        for record in tests[test].values():
            record["profile"].update(figures)
    write_evidence(path, content)


def test_machine_code_is_read_where_it_changed_and_where_it_is_recorded(suite, cold, read):
    result = cold("--gpuperf")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*UNCHANGED*"])
    assert read == []
    cold("--update-baselines=all")
    assert {*read} == {"sm_80", "sm_90"}
    suite.edit("add.cu", "+= N", "-= N")
    cold("--gpuperf").stdout.fnmatch_lines(["*SAME*"])
    assert {*read} == {"sm_80", "sm_90"}


def test_record_that_is_wrong_is_put_right_by_an_update(suite, cold, read):
    """Of two records that contradict each other none is taken for the code."""
    before = suite.baseline_files()
    change_record(suite, "test_add_again", code_hash="c0de" * 16)
    result = cold("--gpuperf")
    result.stdout.fnmatch_lines(["*::test_add", "*UNCHANGED", "*::test_add_again", "*SAME"])
    assert "sm_80" in read
    change_record(suite, "test_add", code_hash="c0de" * 16)
    cold("--gpuperf")
    suite.run("--update-baselines=all", ARCHS)
    assert suite.baseline_files() == before
