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


def test_a_fixture_that_reads_a_time_in_a_plain_run_skips_its_test(gpu_suite):
    gpu_suite.write("test_data.py", TIMED_FIXTURE)
    result = gpu_suite.run("-rs", "test_data.py")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*checked only: work was not timed: run pytest --gpuperf"])
    gpu_suite.run("--gpuperf", "test_data.py").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "raises", "outcome", "written"),
    [
        (FIXTURE, "raise KeyError('gone')", "errors", 0),
        (FIXTURE, "pytest.skip('not here')", "skipped", 0),
        (FIXTURE_BEHIND_KERNEL, "pytest.skip('not here')", "skipped", 3),
    ],
    ids=["error", "skip", "skip behind a kernel"],
)
def test_fixture_that_ends_otherwise_leaves_its_kernels_alone(suite, text, raises, outcome, written):
    suite.write("test_data.py", text.replace("return gpu", f"{raises}\n    return gpu"))
    result = suite.run("--update-baselines", "test_data.py")
    assert result.parseoutcomes() == {outcome: 1}
    assert bool(suite.baseline_files()) == bool(written)
    assert (f"{written} baselines written" in result.stdout.lines) == bool(written)


CALLABLE = """
def test_call(gpu, gpuperf):
    a = gpu.random(512, seed=1)
    gpuperf(lambda: a.fill(0), name="call")
"""


def test_callables_have_neither_a_time_nor_machine_code(suite):
    suite.write("test_call.py", CALLABLE)
    result = suite.run("--gpuperf", "test_call.py")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["timing needs a GPU: * 1 callable was not judged (*", "ERROR: nothing was *"])
    assert "registers / spilled bytes" not in result.stdout.str()
    result = suite.run("--gpuperf", "-k", "other or call")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["timing needs a GPU: 1 workload was judged by static evidence only, 1 callable was not judged (*"]
    )
