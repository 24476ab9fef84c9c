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


def test_machine_code_on_record_is_not_read(cold, read):
    result = cold("--gpuperf")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*UNCHANGED*"])
    assert read == []


def test_machine_code_that_changed_is_read(suite, cold, read):
    suite.edit("add.cu", "+= N", "-= N")
    result = cold("--gpuperf")
    result.stdout.fnmatch_lines(["*SAME*"])
    assert {*read} == {"sm_80", "sm_90"}


def test_an_update_reads_what_it_records(cold, read):
    cold("--update-baselines=all")
    assert {*read} == {"sm_80", "sm_90"}


def test_an_update_after_a_gated_run_reads_what_that_took_from_the_record(suite, cold, read):
    before = suite.baseline_files()
    change_record(suite, "test_add", code_hash="c0de" * 16)
    change_record(suite, "test_add_again", code_hash="c0de" * 16)
    cold("--gpuperf")
    suite.run("--update-baselines=all", ARCHS)
    assert suite.baseline_files() == before


def test_of_two_records_that_contradict_each_other_none_is_taken(suite, cold, read):
    change_record(suite, "test_add_again", code_hash="c0de" * 16)
    result = cold("--gpuperf")
    result.stdout.fnmatch_lines(["*::test_add", "*UNCHANGED", "*::test_add_again", "*SAME"])
    assert "sm_80" in read
