"""pytest's subtests: what stops a test early stops a subtest, and fails neither."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="subtests are new in pytest 9")

TIMES_IN_SUBTESTS = """
def test_work(cuda_kernel, gpu, gpuperf, subtests):
    for size in (512, 1024):
        a, b = gpu.random(size, seed=1), gpu.empty(size)
        launch = cuda_kernel("other.cu", "other").launch(2, 256, (a, b, size))
        with subtests.test(size=size):
            assert gpuperf(launch, name=f"of {size}").time_ns > 0
            gpuperf(launch, name=f"again {size}")
"""
NAMES = ["of 512", "of 1024"]


def test_a_time_in_a_subtest_needs_no_guard_without_a_gpu(suite):
    suite.write("test_suite.py", TIMES_IN_SUBTESTS)
    result = suite.run("--gpuperf", "--gpuperf-arch=sm_90")
    assert result.ret == 0
    assert "1 static only" in result.stdout.lines[-1]
    result.stdout.fnmatch_lines([f"  {name} *NEW" for name in NAMES])


def test_a_time_in_a_subtest_needs_no_guard_where_nothing_is_timed(gpu_suite):
    gpu_suite.write("test_suite.py", TIMES_IN_SUBTESTS)
    result = gpu_suite.run()
    assert result.ret == 0
    result.assert_outcomes(passed=1)


def test_what_a_stopped_subtest_left_out_is_named(suite):
    suite.write("test_suite.py", TIMES_IN_SUBTESTS.replace(".time_ns > 0", " is not None"))
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    suite.write("test_suite.py", TIMES_IN_SUBTESTS)
    result = suite.run("--gpuperf", "--gpuperf-open=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["ERROR: 2 workloads NOT-MEASURED on sm_90: its test needs a GPU before it: *[[]again 1024[]]*"]
    )


def test_an_error_in_a_subtest_still_fails(suite):
    suite.write("test_suite.py", TIMES_IN_SUBTESTS.replace(".time_ns > 0", " is None"))
    result = suite.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["SUBFAILED(size=512) test_suite.py::test_work*"])


def test_counters_in_a_subtest_need_no_guard(gpu_suite):
    gpu_suite.write("test_suite.py", TIMES_IN_SUBTESTS.replace(".time_ns > 0", ".counters['x'] > 0"))
    result = gpu_suite.run("--gpuperf")
    assert result.ret == 0
    result.assert_outcomes(passed=1)


XFAILED_BESIDE = """
import pytest

def test_work(cuda_kernel, gpu, subtests):
    cuda_kernel("other.cu", "other")
    with subtests.test("known bug"):
        pytest.xfail("issue 12")
"""


def test_a_test_that_passes_is_recorded_whatever_a_subtest_is_expected_to_do(suite, monkeypatch):
    suite.write("test_suite.py", XFAILED_BESIDE)
    suite.run("--update-baselines", "--gpuperf-arch=sm_90").stdout.fnmatch_lines(["1 baseline written"])
    monkeypatch.setenv("CI", "true")
    assert suite.run("--gpuperf").ret == 0
