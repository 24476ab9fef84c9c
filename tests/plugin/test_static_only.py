"""Tests that use data, a time or counters that are not there: they end as static only or checked only, and do not fail.

In a subtest and in the test itself; test_static_gate has fixtures and other ways to end.
"""

from __future__ import annotations

import pytest

subtests = pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="subtests are new in pytest 9")


CALLABLE = """
def test_call(gpu, gpuperf):
    a = gpu.random(512, seed=1)
    gpuperf(lambda: a.fill(0), name="call")
"""


def test_callables_have_neither_a_time_nor_machine_code(suite):
    suite.write("test_call.py", CALLABLE)
    result = suite.run("--gpuperf", "test_call.py")
    assert result.ret == 10
    nothing = "ERROR: nothing was measured: 1 test ran and has no kernel or time to judge without a GPU*"
    result.stdout.fnmatch_lines(["timing needs a GPU: * 1 callable was not judged (*", nothing])
    assert "registers / spilled bytes" not in result.stdout.str()
    result = suite.run("--gpuperf", "-k", "other or call")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["timing needs a GPU: 1 workload was judged by static evidence only, 1 callable was not judged (*"]
    )


IN_SUBTESTS = """
import pytest

def test_work(cuda_kernel, gpu, gpuperf, subtests):
    for size in (512, 1024):
        a, b = gpu.random(size, seed=1), gpu.empty(size)
        launch = cuda_kernel("other.cu", "other").launch(2, 256, (a, b, size))
        with subtests.test(size=size):
            assert gpuperf(launch, name=f"of {size}").time_ns > 0
            gpuperf(launch, name=f"again {size}")
    with subtests.test("known bug"):
        pytest.xfail("issue 12")
"""


@subtests
def test_subtest_needs_no_guard_where_nothing_is_timed_or_counted(gpu_suite):
    gpu_suite.write("test_suite.py", IN_SUBTESTS)
    assert gpu_suite.run().ret == 0
    gpu_suite.write("test_suite.py", IN_SUBTESTS.replace(".time_ns > 0", ".counters['x'] > 0"))
    assert gpu_suite.run("--gpuperf").ret == 0


@subtests
def test_workload_that_a_stopped_subtest_left_out_is_named(suite, monkeypatch):
    """A subtest that is expected to fail keeps its test from no record; another failure is one."""
    suite.write("test_suite.py", IN_SUBTESTS.replace(".time_ns > 0", " is not None"))
    recorded = suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    recorded.stdout.fnmatch_lines(["4 baselines written"])
    monkeypatch.setenv("CI", "true")
    assert suite.run("--gpuperf").ret == 0
    monkeypatch.delenv("CI")
    suite.write("test_suite.py", IN_SUBTESTS)
    result = suite.run("--gpuperf", "--gpuperf-open=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines([
        "  of 512 *", "  of 1024 *",
        "ERROR: 2 workloads NOT-MEASURED on sm_90: its test needs a GPU before this workload: *[[]again 1024[]]*",
    ])  # fmt: skip
    suite.write("test_suite.py", IN_SUBTESTS.replace(".time_ns > 0", " is None"))
    result = suite.run("--gpuperf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["SUBFAILED(size=512) test_suite.py::test_work*"])
