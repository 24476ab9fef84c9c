"""A kernel that breaks the GPU, never ends or finds no memory fails its own test, and none after it lies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import warm_python
from suite_under_test import HERE

FAULT = "cudaErrorIllegalAddress: an illegal memory access was encountered"

DEVICE = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import os
import time
import pytest
from simulated_gpu import SimulatedGpu

def work(a, b, n):
    b[:] = a

def wild(a, b, n):
    THE_GPU[0].broken = {FAULT!r}
    THE_GPU[0].synchronize()

def wild_later(a, b, n):
    THE_GPU[0].broken = {FAULT!r}

def endless(a, b, n):
    THE_GPU[0].endless = True
    time.sleep(600)

class OutOfMemoryError(MemoryError):
    pass

def hungry(a, b, n):
    raise OutOfMemoryError("Out of memory allocating 96,636,764,160 bytes")

THE_GPU = []

@pytest.hookimpl(tryfirst=True)
def pytest_gpuperf_device(config, worker):
    kernels = (work, wild, wild_later, endless, hungry)
    THE_GPU.append(SimulatedGpu(implementations={{one.__name__: one for one in kernels}}))
    return THE_GPU[0]
"""

TESTS = """
import pytest

def run(cuda_kernel, gpu, gpuperf, name):
    source = SOURCE.replace("work", name)
    kernel = cuda_kernel(source, name, options=["-DSTEPS=100"])
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    return gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)), check=lambda: gpu.assert_equal(b, a))

SOURCE = '''
extern "C" __global__ void work(const float* a, float* b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    for (int k = 0; k < STEPS; ++k) x = x * 1.5f + a[i];
    b[i] = x;
}
'''

def test_before(cuda_kernel, gpu, gpuperf):
    run(cuda_kernel, gpu, gpuperf, "work")

def test_culprit(cuda_kernel, gpu, gpuperf):
    run(cuda_kernel, gpu, gpuperf, "CULPRIT")

@pytest.mark.parametrize("number", range(3))
def test_after(cuda_kernel, gpu, gpuperf, number):
    run(cuda_kernel, gpu, gpuperf, "work")
"""


@pytest.fixture
def culprit_suite(pytester):
    def write(culprit):
        pytester.makeconftest(DEVICE)
        return pytester.makepyfile(test_kernels=TESTS.replace("CULPRIT", culprit))

    return write


def run(pytester, *arguments, **environment):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junit-xml=junit.xml", *arguments]
    return subprocess.run(
        command, cwd=pytester.path, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def cases(pytester):
    """Outcome of each test case by name, as JUnit has it."""
    found = {}
    for case in ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase"):
        assert case.get("name") not in found, "twice"
        found[case.get("name")] = next(
            (one.tag for one in case if one.tag in ("failure", "error", "skipped")), "passed"
        )
    return found


ALL_BUT_ONE = {"test_before": "passed", "test_culprit": "failure", **{f"test_after[{n}]": "passed" for n in range(3)}}
WORDS = {
    "wild": [f"a kernel faulted on the GPU: {FAULT}", "last launched: wild  grid (8, 1, 1)  block (256, 1, 1)",
             "seen at test_kernels.py:8"],
    "wild_later": [f"a kernel faulted on the GPU: {FAULT}", "last launched: wild_later  grid (8, 1, 1)"],
    "endless": ["a kernel does not end", "last launched: endless  grid (8, 1, 1)  block (256, 1, 1)"],
    "hungry": ["Out of memory allocating"],
}  # fmt: skip


@pytest.mark.parametrize("culprit", ["wild", "endless"])
def test_with_a_worker_the_tests_after_a_culprit_pass(pytester, culprit_suite, culprit):
    culprit_suite(culprit)
    flags = "--gpuperf", "--gpuperf-kernel-timeout=1", "--gpuperf-report=report.json", "-n", "1"
    result = run(pytester, *flags)
    assert result.returncode == 1, result.stdout + result.stderr
    assert cases(pytester) == ALL_BUT_ONE
    for words in WORDS[culprit]:
        assert words in result.stdout, result.stdout
    assert "1 failed, 4 passed" in result.stdout.splitlines()[-1]
    told = json.loads((pytester.path / "report.json").read_text())
    assert len([one for one in told["tests"] if "test_after" in one["test"]]) == 3


@pytest.mark.parametrize("culprit", ["wild_later", "hungry"])
def test_without_a_worker_tests_after_a_lost_gpu_are_not_measured(pytester, culprit_suite, culprit):
    culprit_suite(culprit)
    result = run(pytester, "--gpuperf", "-rs")
    assert result.returncode == 1, result.stdout + result.stderr
    after = "passed" if culprit == "hungry" else "skipped"
    assert cases(pytester) == {one: after if "after" in one else how for one, how in ALL_BUT_ONE.items()}
    for words in WORDS[culprit]:
        assert words in result.stdout, result.stdout
    lost = "the GPU's context is lost (by test_kernels.py::test_culprit); -n 1 goes on in a fresh process"
    assert (lost in result.stdout) == (after == "skipped")


def test_without_a_worker_an_endless_kernel_ends_the_run_with_its_name(pytester, culprit_suite):
    culprit_suite("endless")
    result = run(pytester, "--gpuperf", "--gpuperf-kernel-timeout=1")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "gpuperf: FAILED test_kernels.py::test_culprit: nothing came back from the GPU for 1 s" in result.stderr
    for words in WORDS["endless"]:
        assert words in result.stderr


def test_fault_of_a_fixtures_end_fails_its_test(pytester, culprit_suite):
    file = culprit_suite("work")
    ends = (
        "\n@pytest.fixture\ndef late():\n    yield\n    import conftest\n    conftest.THE_GPU[0].broken = 'illegal'\n"
    )
    file.write_text(file.read_text().replace("def test_culprit(cuda", f"\n{ends}\ndef test_culprit(late, cuda"))
    result = run(pytester, "--gpuperf")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "after this test the GPU was lost to its process: illegal" in result.stdout
    assert "2 passed, 3 skipped" in result.stdout.splitlines()[-1]
    assert "1 error" in result.stdout.splitlines()[-1]


BREAKS = """

class Breaking(SimulatedGpu):
    def load(self, binary):
        kernel = super().load(binary)
        cubins = pathlib.Path("baselines").rglob("*")
        return self.broken_kernel if any(binary.cubin_hash in one.name for one in cubins) else kernel

    def broken_kernel(self, *_):
        self.broken = "cudaErrorIllegalAddress: an illegal memory access was encountered"
"""


def test_baseline_whose_own_code_breaks_the_gpu_is_named(recorded):
    """The record is older than a check of the launch, say: its code reads what the candidate's arrays do not have."""
    recorded.edit("conftest.py", "import pytest\n", "import pathlib\nimport pytest\n")
    recorded.edit("conftest.py", "\n\ndef work(", BREAKS + "\n\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Breaking(")
    recorded.change_code()
    result = recorded.run("--gpuperf")
    result.stdout.fnmatch_lines([
        "the baseline's machine code faults on what the candidate runs on: cudaErrorIllegalAddress*",
        "  last launched: work of the baseline  grid (8, 1, 1)*",
    ])  # fmt: skip
    result.assert_outcomes(failed=1, skipped=2)


def test_long_wait_that_the_gpu_has_no_part_in_is_left_alone(pytester, culprit_suite):
    culprit_suite("endless")
    conftest = (pytester.path / "conftest.py").read_text()
    (pytester.path / "conftest.py").write_text(
        conftest.replace("THE_GPU[0].endless = True", "b[:] = a")
        .replace("time.sleep(600)", "time.sleep(1.5 if not WAITED and not WAITED.append(1) else 0)")
        .replace("THE_GPU = []", "THE_GPU = []\nWAITED = []")
    )
    result = run(pytester, "--gpuperf", "--gpuperf-kernel-timeout=1", "-k", "before or culprit")
    assert result.returncode == 0, result.stdout


THREADS = """
import threading

def names():
    return [one.name for one in threading.enumerate()]

def test_before(cuda_kernel):
    assert names() == ["MainThread"]

def test_gpu(gpu):
    gpu.empty(1)

def test_after():
    assert names() == ["MainThread", "gpuperf-watch"]
"""


def test_process_has_a_thread_for_its_gpu_from_its_first_use_on(pytester, culprit_suite):
    """Who forks in a test is warned of threads."""
    culprit_suite("work")
    pytester.makepyfile(test_kernels=THREADS)
    result = run(pytester, "--gpuperf", "-p", "no:xdist", **{warm_python.COLD: "1"})  # a fork has others
    assert result.returncode in (0, 10), result.stdout
