"""Workloads on record that a test stopped too early for: said, and failed where that is asked for."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from suite_under_test import HOG, SIMULATED

EVERYTHING_FIRST = """
def test_h(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=10"])
    r = gpuperf(first.launch(grid=2, block=256, args=(a, b, 512)), name="k1", bytes=1)
    second = cuda_kernel("other.cu", "other")
    gpuperf(second.launch(grid=2, block=256, args=(a, b, 512)), name="k2")
    assert r.bandwidth > 0
"""

TIME_FIRST = """
def test_h(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=10"])
    r = gpuperf(first.launch(grid=2, block=256, args=(a, b, 512)), name="k1", bytes=1)
    assert r.bandwidth > 0
    second = cuda_kernel("other.cu", "other")
    gpuperf(second.launch(grid=2, block=256, args=(a, b, 512)), name="k2")
"""

DATA_FIRST = """
def test_h(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    assert gpu.to_host(a).size == 512
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=10"])
    r = gpuperf(first.launch(grid=2, block=256, args=(a, b, 512)), name="k1", bytes=1)
    second = cuda_kernel("other.cu", "other")
    gpuperf(second.launch(grid=2, block=256, args=(a, b, 512)), name="k2")
"""

LAUNCH_BEHIND_DATA = """
def test_h(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    first = cuda_kernel("work.cu", "work", options=["-DSTEPS=10"])
    second = cuda_kernel("other.cu", "other")
    assert gpu.to_host(a).size == 512
    gpuperf(first.launch(grid=2, block=256, args=(a, b, 512)), name="k1", bytes=1)
    gpuperf(second.launch(grid=2, block=256, args=(a, b, 512)), name="k2")
"""

MANY = """
def test_h(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(512, seed=1), gpu.empty(512)
    kernel = cuda_kernel("other.cu", "other")
    for i in range(1, 8):
        r = gpuperf(kernel.launch(grid=2, block=256, args=(a, b, 512)), name=f"k{i}")
    assert r.time_ns > 0
"""

UNREACHED = (
    "test_h.py::test_h: k2  NOT-MEASURED  on sm_80, sm_90 (static)",
    "    has a baseline and was not reached: the test ended at its first need for a GPU. "
    "Put what needs times or data behind the last gpuperf(...) and cuda_kernel(...)",
)


@pytest.fixture
def known(suite):
    """Both workloads of ``test_h`` have baselines."""
    suite.write("test_h.py", EVERYTHING_FIRST)
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90", "test_h.py")
    return suite


def test_a_workload_behind_the_first_time_is_named_and_passes(known):
    known.write("test_h.py", TIME_FIRST)
    result = known.run("--gpuperf", "test_h.py", "--junitxml=junit.xml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*k1 *UNCHANGED", *UNREACHED])
    assert "1 workload was judged by static evidence only" in result.stdout.str()
    properties = ElementTree.parse(known.path / "junit.xml").getroot().iter("property")
    assert {("gpuperf.k2.sm_80", "NOT-MEASURED"), ("gpuperf.k1.sm_80", "UNCHANGED")} <= {
        (one.get("name"), one.get("value")) for one in properties
    }


def test_a_suite_that_reaches_everything_says_nothing_of_it(known):
    result = known.run("--gpuperf", "test_h.py")
    assert result.ret == 0
    assert "not reached" not in result.stdout.str()


def test_a_test_that_reached_its_end_without_a_workload_says_so(known):
    known.write("test_h.py", EVERYTHING_FIRST.replace('"k2"', '"k3"').replace("    assert r.bandwidth > 0\n", ""))
    text = known.run("--gpuperf", "test_h.py").stdout.str()
    assert "    has a baseline and was not reached: the test passed without it. Let it come to" in text
    assert (
        "test_h.py::test_h: k3  NEW  on sm_80, sm_90 (static)\n    was test_h.py::test_h [k2], with the same " in text
    )


def test_missing_fail_fails_the_test(known):
    known.write("test_h.py", TIME_FIRST)
    result = known.run("--gpuperf", "--gpuperf-open=fail", "test_h.py")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*k2  NOT-MEASURED  on sm_80, sm_90 (static)", "*has a baseline and was not reached*"])


def test_ci_alone_does_not_fail_the_test(known, monkeypatch):
    monkeypatch.setenv("CI", "true")
    known.write("test_h.py", TIME_FIRST)
    result = known.run("--gpuperf", "test_h.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(UNREACHED)


@pytest.mark.parametrize("missing", ["warn", "fail"])
def test_data_before_the_first_kernel_leaves_nothing_and_says_what_was_there(known, missing):
    known.write("test_h.py", DATA_FIRST)
    result = known.run("--gpuperf", f"--gpuperf-open={missing}", "test_h.py")
    assert result.ret == (10 if missing == "warn" else 1)
    many = "test_h.py::test_h and 1 workload more like it: k1  NOT-MEASURED  on sm_80, sm_90 (static)"
    result.stdout.fnmatch_lines([many if missing == "warn" else UNREACHED[0].partition(": ")[2], UNREACHED[1]])


def test_nothing_measured_says_that_the_test_ended_before_its_first_kernel(known):
    known.write("test_h.py", DATA_FIRST)
    result = known.run("--gpuperf", "test_h.py")
    assert "used cuda_kernel or gpuperf" not in result.stdout.str()
    result.stdout.fnmatch_lines([
        "ERROR: nothing was measured: 1 test ran and ended before its first cuda_kernel(...) or gpuperf(...), at its "
        "first need for a GPU. Put what needs times or data behind *"
    ])  # fmt: skip


def test_a_kernel_that_was_compiled_and_not_launched_was_reached(known):
    known.write("test_h.py", LAUNCH_BEHIND_DATA)
    result = known.run("--gpuperf", "test_h.py")
    assert result.ret == 0
    assert "not reached" not in result.stdout.str()


def test_many_share_one_line(suite):
    suite.write("test_h.py", MANY)
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90", "test_h.py")
    suite.edit("test_h.py", "    assert", "        assert")
    result = suite.run("--gpuperf", "test_h.py")
    assert result.ret == 0
    many = "test_h.py::test_h and 5 workloads more like it: k2  NOT-MEASURED  on sm_80, sm_90 (static)"
    result.stdout.fnmatch_lines([many, UNREACHED[1]])


def test_workers_tell_the_controller(known):
    known.write("test_h.py", TIME_FIRST)
    result = known.run("--gpuperf", "-n2", "test_h.py", subprocess=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(UNREACHED)


def test_a_time_that_an_unchanged_workload_has_not_got_hides_no_other(recorded):
    recorded.write("test_h.py", EVERYTHING_FIRST)
    recorded.run("--update-baselines=new", "test_h.py")
    recorded.write("test_h.py", TIME_FIRST)
    result = recorded.run("--gpuperf", "--gpuperf-time=changed", "test_h.py")
    assert result.ret == 0
    ended = "the test ended at its first need for a time or a counter that this run does not take. Put *"
    result.stdout.fnmatch_lines(["*: k2  NOT-MEASURED  on *", f"    has a baseline and was not reached: {ended}"])


SEVERAL_OF_ONE_NAME = """
SOURCE = '''extern "C" __global__ void k(float *y) { y[threadIdx.x] = y[1] * VALUE; }'''

def test_several(cuda_kernel, gpu, gpuperf):
    small = cuda_kernel(SOURCE, "k", options=["-DVALUE=1.5f"])
    large = cuda_kernel(SOURCE, "k", options=["-DVALUE=1.1"])
    STOP
    MEASURE
    cuda_kernel(SOURCE, "k", options=["-DVALUE=2.5f"])
"""
MEASURE = "[gpuperf(k.launch(1, 32, (gpu.empty(32),)), name=n) for k, n in ((small, 'a'), (large, 'b'))]"


@pytest.mark.parametrize("measure", [MEASURE, "pass"], ids=["under names of their own", "by their kernel's name"])
def test_unchanged_code_is_unchanged_where_a_test_stops_among_kernels_of_one_name(suite, measure):
    suite.write("test_h.py", SEVERAL_OF_ONE_NAME.replace("STOP", "pass").replace("MEASURE", measure))
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "test_h.py")
    suite.write("test_h.py", SEVERAL_OF_ONE_NAME.replace("STOP", "gpu.empty(1).sum()").replace("MEASURE", measure))
    result = suite.run("--gpuperf", "test_h.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["  k *UNCHANGED"])


TWO_OF_ONE_NAME = """
def test_two(cuda_kernel, gpu, gpuperf):
    a, b = gpu.random(2048, seed=1), gpu.empty(32)
    first = cuda_kernel("first.cu", "hog")
    second = cuda_kernel("second.cu", "hog")
    {second_stop}
    gpuperf(first.launch(grid=1, block=32, args=(a, b)), name="one")
    {third_stop}
    gpuperf(second.launch(grid=1, block=32, args=(a, b)), name="two")
"""
STOP = "assert gpu.to_host(b).size == 32"


@pytest.mark.parametrize("on_record_from", ["a GPU", "no GPU"])
@pytest.mark.parametrize("stop", ["second_stop", "third_stop"])
@pytest.mark.parametrize("changed", ["first.cu", "second.cu"])
def test_each_kernel_of_one_name_that_was_compiled_before_the_stop_is_judged(suite, on_record_from, stop, changed):
    suite.write("first.cu", HOG)
    suite.write("second.cu", HOG.replace("0.25f", "0.75f"))
    stops = {"second_stop": "", "third_stop": "", stop: STOP}
    suite.write("test_two.py", TWO_OF_ONE_NAME.format(**stops))
    if on_record_from == "a GPU":
        suite.write("conftest.py", SIMULATED.replace('"work": work', '"hog": lambda a, b: None'))
    few = ("--gpuperf-disturbed",)
    assert suite.run("--update-baselines", "--gpuperf-arch=sm_90", "test_two.py", *few).ret == 0
    suite.write("conftest.py", "")
    assert suite.run("--gpuperf", "test_two.py").stdout.lines[-2] == "2 workloads: 2 UNCHANGED"
    suite.edit(changed, "float arr[64];", "float arr[64], far[256]; for (int k = 0; k < 256; ++k) far[k] = a[k];")
    suite.edit(changed, "float s = 0.0f;", "float s = far[int(arr[0]) & 255];")
    result = suite.run("--gpuperf", "test_two.py")
    assert result.ret == 1
    assert "2 workloads: 1 WORSE, 1 UNCHANGED" in result.stdout.lines


def test_kernels_that_nothing_tells_apart_do_not_fail_a_test_that_may_yet_name_them(suite):
    body = f"""
def test_two(cuda_kernel, gpu, gpuperf):
    for factor in ("0.25f", "0.75f"):
        cuda_kernel({HOG!r}.replace("0.25f", factor), "hog")
    assert gpu.to_host(gpu.empty(32)).size == 32
"""
    suite.write("test_two.py", body)
    result = suite.run("--gpuperf", "test_two.py")
    assert result.ret == 0
    assert "1 workload: 1 NEW" in result.stdout.lines
