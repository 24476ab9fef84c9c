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
ESTIMATES = 2 * 2
"""Entries that explain a changed kernel: both versions on both architectures."""


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
    assert count == 3 * 2 + ESTIMATES


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
    for file in Path(suite.path, "baselines").rglob("*.json*"):
        file.write_text("{", encoding="utf-8")
    result, count = entries("--gpuperf", ARCHS, "-k", "1")
    assert (result.parseoutcomes()["failed"], count) == (1, 2)
    result.stdout.fnmatch_lines(["*test_suite.jsonl*"])


@pytest.fixture
def varying(monkeypatch, tmp_path):
    """A compiler that makes other machine code of a source the first time it is asked."""
    from pytest_gpuperf.compile import compilations

    real, asked = compilations.compile_cubin, set()

    def compile_cubin(program, arch):
        if (program, arch) not in asked and "work" in program.text:
            asked.add((program, arch))
            program = program._replace(text=program.text.replace("x * 1.5f", "x * 1.25f"))
        return real(program, arch)

    monkeypatch.setattr(compilations, "compile_cubin", compile_cubin)
    monkeypatch.setenv("GPUPERF_CACHE_DIR", str(tmp_path / "empty"))


def test_machine_code_on_record_is_asked_for_again_before_anything_has_changed(recorded, varying):
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    assert not [line for line in result.outlines if "SAME" in line]


def test_a_second_recording_of_static_evidence_keeps_the_machine_code_on_record(suite, recording, varying):
    shutil.copytree(recording, suite.path / "baselines")
    before = suite.baseline_files()
    suite.run("--update-baselines=all")
    assert suite.baseline_files() == before


def test_an_edited_source_is_compiled_once(recorded, varying):
    recorded.edit("work.cu", "b[i] = x;", "b[i] = x;;")
    result = recorded.run("--gpuperf", "-k", "1024")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*SAME*"])
