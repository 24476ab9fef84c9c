"""A baseline whose machine code was swapped: never loaded, and never green where it counts."""

from __future__ import annotations

import hashlib
import shutil

import pytest
from evidence_tree import read_evidence, write_evidence
from git_samples import commit

from pytest_gpuperf.baselines.cubin_store import compressed
from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource

NODE = "test_suite.py::test_work[1024]"
SLOW = """
extern "C" __global__ void slow(const float* a, float* b, int n)
{
    float x = a[0];
#pragma unroll
    for (int k = 0; k < 1430; ++k) x = x * 1.5f + a[0];
    b[0] = x;
}
"""
"""Another kernel of the same cubin, that takes as long as ``work`` does now."""
COUNTING = """
class Counting(SimulatedGpu):
    def load(self, binary):
        import hashlib, pathlib
        with (pathlib.Path(__file__).parent / "loads").open("a") as file:
            file.write(f"{binary.name} {hashlib.sha256(binary.cubin).hexdigest()}\\n")
        return super().load(binary)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return tmp_path_factory.mktemp("swapped") / "baselines"


@pytest.fixture
def swapped(gpu_suite, recording, monkeypatch):
    """A recorded suite on a GPU that writes down what it loads, under CI; ``work`` is nine times slower now."""
    gpu_suite.write("work.cu", (gpu_suite.path / "work.cu").read_text() + SLOW)
    if not recording.exists():
        record = ("--update-baselines", "--gpuperf-disturbed")
        gpu_suite.run(*record)
        shutil.copytree(gpu_suite.path / "baselines", recording)
    shutil.copytree(recording, gpu_suite.path / "baselines", dirs_exist_ok=True)
    gpu_suite.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=1430")
    gpu_suite.edit("conftest.py", "def work(", f"{COUNTING}\n\ndef work(")
    gpu_suite.edit("conftest.py", "return SimulatedGpu(", "return Counting(")
    monkeypatch.setenv("CI", "true")
    return gpu_suite


def edit_record(suite, edit):
    path = suite.path / "baselines/simulated-gpu/test_suite.jsonl"
    content = read_evidence(path)
    edit(content["tests"]["test_work[1024]"]["work"])
    write_evidence(path, content)


def record_of(suite, test="test_work[1024]", workload="work"):
    return read_evidence(suite.path / "baselines/simulated-gpu/test_suite.jsonl")["tests"][test][workload]


def slow_cubin(suite):
    """The candidate's own machine code: against this nothing is slower."""
    source = KernelSource(text=(suite.path / "work.cu").read_text(), name="work", options=("-DSTEPS=1430",))
    return compile_kernel(source, "sm_90").cubin


def add_cubin(suite, cubin):
    sha256 = hashlib.sha256(cubin).hexdigest()
    path = cubin_path(suite.path / "baselines", sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compressed(cubin))
    return sha256


def change_the_content(suite):
    path = cubin_path(suite.path / "baselines", record_of(suite)["cubin"])
    path.write_bytes(compressed(slow_cubin(suite)))


def add_a_cubin_and_name_it(suite):
    sha256 = add_cubin(suite, slow_cubin(suite))
    edit_record(suite, lambda record: record.update(cubin=sha256))


def name_another_kernel_of_the_cubin(suite):
    edit_record(suite, lambda record: record.update(symbol="slow"))


WAYS = {
    change_the_content: "the content does not match the name",
    add_a_cubin_and_name_it: "its code has the hash ",
    name_another_kernel_of_the_cubin: "its code has the hash ",
}


def loaded(suite):
    """SHA-256 of the cubins that were loaded, but for the plugin's own."""
    lines = [line.split() for line in (suite.path / "loads").read_text().splitlines()]
    return {sha256 for name, sha256 in lines if name in ("work", "slow", "other")}


@pytest.mark.parametrize("swap", WAYS, ids=lambda swap: swap.__name__)
def test_a_swapped_cubin_is_not_loaded_and_the_run_is_red(swapped, swap):
    swap(swapped)
    result = swapped.run("--gpuperf", NODE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*the machine code of the record of "
            f"test_suite.py::test_work[[]1024] [[]work] is refused: *baselines/cubins/*{WAYS[swap]}*"
        ]
    )
    result.stdout.fnmatch_lines(["*from version control*, or record the workload again with --update-baselines*"])
    assert loaded(swapped) == {hashlib.sha256(slow_cubin(swapped)).hexdigest()}  # the candidate's own
    result = swapped.run("--gpuperf", "--gpuperf-open=warn", NODE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*work  NOT-COMPARABLE  on simulated-gpu (time)*"])


def test_a_swapped_cubin_of_unchanged_code_is_not_loaded_when_all_is_paired(swapped):
    swapped.edit("test_suite.py", "-DSTEPS=1430", "-DSTEPS=100")
    before = record_of(swapped)["cubin"]
    add_a_cubin_and_name_it(swapped)
    result = swapped.run("--gpuperf", "--gpuperf-time=all", NODE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*work  NOT-COMPARABLE  on simulated-gpu (time)*"])
    assert loaded(swapped) == {before}  # the candidate's own


def test_an_untouched_baseline_is_run(swapped):
    commit(swapped.path)
    result = swapped.run("--gpuperf", NODE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert record_of(swapped)["cubin"] in loaded(swapped)
