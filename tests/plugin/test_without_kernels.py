"""Tests that use ``gpu`` and no kernel of ours, without a GPU: they end as static only, and do not fail."""

from __future__ import annotations

import pytest

DATA = """
def test_data(gpu):
    assert gpu.to_host(gpu.random(8, seed=1)).size == 8
"""

FIXTURE = """
import pytest

@pytest.fixture
def host(gpu):
    return gpu.to_host(gpu.random(8, seed=1))

def test_data(host):
    assert host.size == 8
"""

FIXTURE_BEHIND_KERNEL = """
import pytest

@pytest.fixture
def host(cuda_kernel, gpu):
    cuda_kernel("other.cu", "other")
    return gpu.to_host(gpu.random(8, seed=1))

def test_data(host):
    assert host.size == 8
"""

TIMED_FIXTURE = """
import pytest

@pytest.fixture
def time_ns(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=10"])
    return gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512))).time_ns

def test_time(time_ns):
    assert time_ns > 0
"""


@pytest.mark.parametrize("text", [DATA, FIXTURE], ids=["in the test", "in a fixture"])
def test_the_first_use_of_data_ends_the_test_as_static_only(suite, text):
    suite.write("test_data.py", text)
    result = suite.run("-v", "test_data.py")
    result.stdout.fnmatch_lines(["*test_data STATIC ONLY*", "*1 static only*"])
    assert result.ret == 0
    result = suite.run("--gpuperf", "test_data.py")
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        ["ERROR: nothing was measured: 1 test ran and has no kernel or time to judge without a GPU*"]
    )


def test_a_kernel_that_a_fixture_compiled_is_judged_before_the_test_ends(suite):
    suite.write("test_data.py", FIXTURE_BEHIND_KERNEL)
    suite.run("--update-baselines", "test_data.py")
    result = suite.run("--gpuperf", "test_data.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*other *UNCHANGED", "*1 static only*"])
    suite.edit("other.cu", "a[i] * 2.0f", "a[i] * 2.1")
    result = suite.run("--gpuperf", "test_data.py")
    assert result.ret == 1
    assert "other  WORSE" in result.stdout.str()


def test_a_fixture_that_fails_otherwise_is_an_error_as_ever(suite):
    suite.write("test_data.py", FIXTURE.replace("return gpu", "raise KeyError('gone')\n    return gpu"))
    result = suite.run("--gpuperf", "test_data.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*KeyError: 'gone'*"])


def test_what_a_fixture_compiled_before_it_skips_is_recorded_as_where_a_test_skips(suite):
    suite.write("test_data.py", FIXTURE_BEHIND_KERNEL.replace("return gpu", "pytest.skip('not here')\n    return gpu"))
    result = suite.run("--update-baselines", "test_data.py")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["3 baselines written"])


def test_a_fixture_that_reads_a_time_in_a_plain_run_skips_its_test(gpu_suite):
    gpu_suite.write("test_data.py", TIMED_FIXTURE)
    result = gpu_suite.run("-rs", "test_data.py")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*checked only: work was not timed: run pytest --gpuperf"])
    gpu_suite.run("--gpuperf", "test_data.py").assert_outcomes(passed=1)


def test_workers_end_them_so_too(suite):
    suite.write("test_data.py", DATA + FIXTURE.replace("test_data", "test_host"))
    result = suite.run("-n2", "test_data.py", subprocess=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*2 static only*"])
