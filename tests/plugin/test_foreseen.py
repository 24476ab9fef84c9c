"""Kernels that the baselines foresee are compiled with the first of their source, in a gate, for the tests that run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

KERNELS = """
template <int N> __global__ void add(float* data) { data[threadIdx.x] += N; }
"""
TEST = """
import pytest

@pytest.mark.parametrize("n", [1, 2, 3])
def test_add(cuda_kernel, n):
    cuda_kernel("add.cu", f"add<{n}>")
"""
ONLY_THE_FIRST = TEST.replace("cuda_kernel(", "n > 1 or cuda_kernel(")
"""What the baselines know of the other two is not asked for, so only foresight leaves it in the cache."""
ARCHS = "--gpuperf-arch=sm_80,sm_90"


@pytest.fixture
def entries(suite, monkeypatch):
    """Recorded baselines, an empty cache, and how many entries a run leaves there."""
    suite.write("add.cu", KERNELS)
    suite.write("test_suite.py", TEST)
    suite.run("--update-baselines", ARCHS)
    folder = Path(suite.path, "cache")

    def after(*arguments):
        monkeypatch.setenv("GPUPERF_CACHE_DIR", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        result = suite.run(*arguments)
        return result, len(list(folder.rglob("*.entry")))

    return after


def test_the_first_kernel_brings_those_of_the_tests_that_follow(suite, entries):
    suite.write("test_suite.py", ONLY_THE_FIRST)
    _, count = entries("--gpuperf", ARCHS)
    assert count == 3 * 2


def test_tests_that_do_not_run_foresee_nothing(suite, entries):
    suite.write("test_suite.py", ONLY_THE_FIRST)
    _, count = entries("--gpuperf", ARCHS, "-k", "1 or 2")
    assert count == 2 * 2


def test_an_edited_source_is_known_by_the_kernel_that_is_asked_of_it(suite, entries):
    suite.write("test_suite.py", ONLY_THE_FIRST)
    suite.edit("add.cu", "+= N", "-= N")
    _, count = entries("--gpuperf", ARCHS)
    assert count == 3 * 2


def test_a_source_of_which_one_kernel_was_recorded_anew_is_still_one(suite, entries):
    suite.edit("add.cu", "+= N", "+= N == 2 ? 7 : N")
    suite.run("--update-baselines", ARCHS)
    suite.write("test_suite.py", ONLY_THE_FIRST)
    _, count = entries("--gpuperf", ARCHS)
    assert count == 3 * 2


def test_another_kernel_of_another_source_foresees_nothing(suite, entries):
    suite.write("test_suite.py", ONLY_THE_FIRST.replace("add<", "more<"))
    suite.edit("add.cu", "add(", "more(")
    _, count = entries("--gpuperf", ARCHS)
    assert count == 2


def test_a_plain_run_compiles_what_it_is_asked_for(suite, entries):
    suite.write("test_suite.py", ONLY_THE_FIRST)
    _, count = entries(ARCHS)
    assert count == 2


def test_workers_compile_what_they_are_asked_for(suite, entries):
    suite.write("test_suite.py", ONLY_THE_FIRST)
    _, count = entries("--gpuperf", ARCHS, "-n", "2")
    assert count == 2


def test_an_unreadable_baseline_is_told_by_the_gate(suite, entries):
    for file in Path(suite.path, "baselines").rglob("*.json"):
        file.write_text("{", encoding="utf-8")
    result, count = entries("--gpuperf", ARCHS, "-k", "1")
    assert (result.parseoutcomes()["failed"], count) == (1, 2)
    result.stdout.fnmatch_lines(["*test_suite.json*"])
