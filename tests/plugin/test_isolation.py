"""A kernel that breaks the GPU, never ends or finds no memory fails its own test, and none after it lies."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from suite_under_test import KERNEL, SIMULATED, Suite

FAULT = "cudaErrorIllegalAddress: an illegal memory access was encountered"
DEVICE = (
    SIMULATED.replace(
        '{"work": work, "other": work}',
        "dict(work=work, wild=wild, wild_later=wild_later, endless=endless, hungry=hungry)",
    )
    .replace("return SimulatedGpu(", "THE_GPU.append(SimulatedGpu(")
    .replace("hungry))", "hungry)))")
)
DEVICE += f"""    return THE_GPU[0]

THE_GPU = []

def wild_later(a, b, n):
    THE_GPU[0].broken = {FAULT!r}

def wild(a, b, n):
    wild_later(a, b, n)
    THE_GPU[0].synchronize()

def endless(a, b, n):
    THE_GPU[0].endless = True
    __import__("time").sleep(600)

class OutOfMemoryError(MemoryError):
    pass

def hungry(a, b, n):
    raise OutOfMemoryError("Out of memory allocating 96,636,764,160 bytes")
"""
TESTS = """
from pathlib import Path
import pytest

def run(cuda_kernel, gpu, gpuperf, name):
    source = Path("work.cu").read_text().replace("work", name)
    a = gpu.random(1024, seed=1)
    b = gpu.empty_like(a)
    launch = cuda_kernel(source, name, options=["-DSTEPS=100"]).launch(grid=8, block=256, args=(a, b, 1024))
    gpuperf(launch, check=lambda: gpu.assert_equal(b, a))

def test_before(cuda_kernel, gpu, gpuperf):
    run(cuda_kernel, gpu, gpuperf, "work")

def test_culprit(cuda_kernel, gpu, gpuperf):
    run(cuda_kernel, gpu, gpuperf, "CULPRIT")

@pytest.mark.parametrize("number", range(3))
def test_after(cuda_kernel, gpu, gpuperf, number):
    run(cuda_kernel, gpu, gpuperf, "work")
"""
WORDS = {
    "wild": [f"a kernel faulted on the GPU: {FAULT}", "last launched: wild  grid (8, 1, 1)  block (256, 1, 1)",
             "seen at test_suite.py:10"],
    "wild_later": [f"a kernel faulted on the GPU: {FAULT}", "last launched: wild_later  grid (8, 1, 1)"],
    "endless": ["a kernel does not end", "last launched: endless  grid (8, 1, 1)  block (256, 1, 1)"],
    "hungry": ["Out of memory allocating"],
}  # fmt: skip


def run(suite: Suite, culprit: str, *arguments: str, subprocess: bool = False) -> pytest.RunResult:
    """A gated run of a suite whose second test has the culprit for its kernel."""
    suite.write("conftest.py", DEVICE)
    suite.write("work.cu", KERNEL)
    suite.write("test_suite.py", TESTS.replace("CULPRIT", culprit))
    return again(suite, *arguments, subprocess=subprocess)


def again(suite: Suite, *arguments: str, subprocess: bool = False) -> pytest.RunResult:
    return suite.run("--junit-xml=junit.xml", "--gpuperf", *arguments, subprocess=subprocess)


def cases(suite: Suite) -> list[str]:
    """Outcomes of the tests in their order, as JUnit has them."""
    found = {}
    for case in ElementTree.parse(suite.path / "junit.xml").getroot().iter("testcase"):
        assert case.get("name") not in found, "twice"
        tags = (one.tag for one in case if one.tag in ("failure", "error", "skipped"))
        found[case.get("name")] = next(tags, "passed")
    return [found[name] for name in ("test_before", "test_culprit", *(f"test_after[{n}]" for n in range(3)))]


@pytest.mark.parametrize("culprit", ["wild", "endless"])
def test_with_a_worker_the_tests_after_a_culprit_pass(suite: Suite, culprit: str) -> None:
    result = run(suite, culprit, "--gpuperf-kernel-timeout=1", "--gpuperf-report=report.json", "-n", "1")
    assert result.ret == 1
    assert cases(suite) == ["passed", "failure", "passed", "passed", "passed"]
    for words in WORDS[culprit]:
        assert words in result.stdout.str()
    assert "1 failed, 4 passed" in result.stdout.lines[-1]
    reported = json.loads((suite.path / "report.json").read_text())
    assert len([one for one in reported["tests"] if "test_after" in one["test"]]) == 3


@pytest.mark.parametrize("culprit", ["wild_later", "hungry"])
def test_without_a_worker_tests_after_a_lost_gpu_are_not_measured(suite: Suite, culprit: str) -> None:
    result = run(suite, culprit, "-rs")
    assert result.ret == 1
    after = "passed" if culprit == "hungry" else "skipped"
    assert cases(suite) == ["passed", "failure", after, after, after]
    for words in WORDS[culprit]:
        assert words in result.stdout.str()
    lost = "the GPU's context is lost (by test_suite.py::test_culprit); -n 1 goes on in a fresh process"
    assert (lost in result.stdout.str()) == (after == "skipped")


def test_without_a_worker_an_endless_kernel_ends_the_run_with_its_name(suite: Suite) -> None:
    opened_early = "--gpuperf-require-gpu"
    result = run(suite, "endless", "--gpuperf-kernel-timeout=1", opened_early, subprocess=True)
    assert result.ret == 1
    assert "gpuperf: FAILED test_suite.py::test_culprit: the GPU did not answer for 1 s" in result.stderr.str()
    for words in WORDS["endless"]:
        assert words in result.stderr.str()


def test_long_wait_that_the_gpu_has_no_part_in_is_left_alone(suite: Suite) -> None:
    waiting = DEVICE.replace("THE_GPU[0].endless = True", "b[:] = a")
    waiting = waiting.replace("sleep(600)", "sleep(1.5 if not WAITED and not WAITED.append(1) else 0)")
    run(suite, "endless", "--collect-only")
    suite.write("conftest.py", waiting + "\nWAITED = []\n")
    result = again(suite, "--gpuperf-kernel-timeout=1", "-k", "before or culprit", subprocess=True)
    assert result.ret == 0


LATE = """
@pytest.fixture
def late():
    yield
    __import__("conftest").THE_GPU[0].broken = "illegal"

def test_culprit(late, cuda"""


def test_fault_of_a_fixtures_end_fails_its_test(suite: Suite) -> None:
    run(suite, "work", "--collect-only")
    suite.edit("test_suite.py", "def test_culprit(cuda", LATE)
    result = again(suite)
    assert result.ret == 1
    assert "after this test the GPU was lost to its process: illegal" in result.stdout.str()
    assert "2 passed, 3 skipped" in result.stdout.lines[-1]
    assert "1 error" in result.stdout.lines[-1]


BREAKS = """

class Breaking(SimulatedGpu):
    def load(self, binary):
        kernel = super().load(binary)
        cubins = __import__("pathlib").Path("baselines").rglob("*")
        return self.broken_kernel if any(binary.cubin_hash in one.name for one in cubins) else kernel

    def broken_kernel(self, *_):
        self.broken = "cudaErrorIllegalAddress: an illegal memory access was encountered"
"""


def test_baseline_whose_own_code_breaks_the_gpu_is_named(recorded: Suite) -> None:
    """The record is older than a check of the launch, say: its code reads what the candidate's arrays do not have."""
    recorded.edit("conftest.py", "\n\ndef work(", BREAKS + "\n\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Breaking(")
    recorded.change_code()
    result = recorded.run("--gpuperf")
    result.stdout.fnmatch_lines([
        "the baseline's machine code faults on the candidate's arrays: cudaErrorIllegalAddress*",
        "  last launched: work of the baseline  grid (8, 1, 1)*",
    ])  # fmt: skip
    result.assert_outcomes(failed=1, skipped=2)
