"""A changed kernel is decided beside its baseline's own machine code: SAME, FASTER, SLOWER, or why it is neither."""

from __future__ import annotations

import hashlib
import json
import lzma

import pytest
from evidence_tree import read_evidence, write_evidence
from suite_under_test import RECORD, REFUSING

from pytest_gpuperf.baselines.cubin_store import compressed
from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.compile.compiler import compile_kernel
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.timing import compare

ONE = ("-k", "1024")
ON = r"on simulated-gpu \(time\)"
STEP = r"x1\.\d+ \[1.*\]  \S+ us -> \S+ us"
PAIRED = r" +tolerance 0.5 %, paired, \d+\+\d+ blocks"


def slower(suite, steps=104):
    suite.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")


def edit_baseline(suite, edit):
    """Let ``edit`` change the time baseline of test_work[1024], a dict, on disk."""
    path = suite.path / "baselines" / "simulated-gpu" / "test_suite.jsonl"
    content = read_evidence(path)
    edit(content["tests"]["test_work[1024]"]["work"])
    write_evidence(path, content)


def stored_cubin(suite):
    content = read_evidence(suite.path / "baselines" / "simulated-gpu" / "test_suite.jsonl")
    return cubin_path(suite.path / "baselines", content["tests"]["test_work[1024]"]["work"]["cubin"])


def store_cubin(suite, binary):
    """Let the record be of this kernel: its machine code and the hash of that."""
    cubin = binary.cubin
    sha256 = hashlib.sha256(cubin).hexdigest()
    path = cubin_path(suite.path / "baselines", sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compressed(cubin))
    edit_baseline(suite, lambda record: record.update(cubin=sha256))
    edit_baseline(suite, lambda record: record["identity"].update(code=binary.profile.code_hash))


def judgements_of(suite):
    """Those of the last run."""
    tests = json.loads((suite.path / ".gpuperf/last-run.json").read_text())["tests"]
    return [one for test in tests for work in test["workloads"] for one in work["judgements"]]


@pytest.mark.parametrize("steps", [104, 120])
def test_slower_kernel_fails_after_two_processes(recorded, steps):
    slower(recorded, steps)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            rf"work  SLOWER  {ON}  {STEP}$",
            rf"{PAIRED}, E=\S+ \(need 4.9e3\), interval 95 % anytime$",
            rf" +also: instructions 116 -> {16 + steps}, code size .*instructions: fp32 100 -> {steps}",
            r" +proven to be more than 0.5 % slower, in two processes; the source and its machine code changed",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_workload_and_process_has_its_coin_and_each_test_its_share(recorded, workers):
    """The share is that of the tests collected, in whichever order or worker they run."""
    slower(recorded, 120)
    recorded.run("--gpuperf", "-n", workers).assert_outcomes(failed=2, passed=1)
    times = [one["time"] for one in judgements_of(recorded) if one["verdict"] == "SLOWER"]
    assert [len(one["seeds"]) for one in times] == [2, 2]
    assert len({seed for one in times for seed in one["seeds"]}) == 4
    assert [one["log_e_needed"] for one in times] == [pytest.approx(8.5, abs=0.01)] * 2


def test_other_code_of_the_same_speed_passes(recorded):
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1.00\d|0.99\d) \[.*\] .* SAME"])


def launched_with(suite, blocks, block_ns):
    """Otherwise than on record, on a GPU where each block takes so long."""
    suite.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(block_ns={block_ns}, ")
    suite.edit("test_suite.py", "grid=8", f"grid={blocks}")


def test_slower_launch_of_the_same_code_fails(recorded):
    launched_with(recorded, blocks=16, block_ns=50)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            rf"work  SLOWER  {ON}  {STEP}$",
            PAIRED,
            r" +proven to be more than 0.5 % slower, in two processes; the machine code is that of the baseline; "
            r"the launch changed from grid=\(8, 1, 1\) .* to grid=\(16, 1, 1\)",
        ]
    )


def test_another_launch_of_the_same_speed_passes(recorded):
    launched_with(recorded, blocks=16, block_ns=0)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1.00\d|0.99\d) \[.*\] .* SAME"])


def test_all_pairs_unchanged_workloads_too(recorded):
    result = recorded.run("--gpuperf", "--gpuperf-time=all")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines([r"  doubling .*SAME"])
    assert "UNCHANGED" not in result.stdout.str().partition("device time")[2]


# --- a tolerance of the test's or the run's own --------------------------------------------------


def test_a_wider_tolerance_that_nothing_needs_is_not_named(recorded):
    recorded.change_code()
    recorded.edit("test_suite.py", "def test_work", "@pytest.mark.gpuperf(tolerance=0.5)\ndef test_work")
    assert "wider tolerance" not in recorded.run("--gpuperf", *ONE).stdout.str()


# --- when the baseline cannot run again ----------------------------------------------------------


def delete_cubin(suite):
    stored_cubin(suite).unlink()


def take_cubin_off_the_record(suite):
    edit_baseline(suite, lambda record: record.update(cubin=""))


def alter_cubin(suite):
    path = stored_cubin(suite)
    path.write_bytes(compressed(lzma.decompress(path.read_bytes(), lzma.FORMAT_ALONE) + b"x"))


def store_other_parameters(suite):
    source = 'extern "C" __global__ void work(const float* a, float* b, long long n, int m) { b[n] = a[m]; }'
    store_cubin(suite, compile_kernel(KernelSource(text=source, name="work"), "sm_90"))


def store_other_kernel(suite):
    source = 'extern "C" __global__ void other(const float* a, float* b, int n) { b[n] = a[n]; }'
    store_cubin(suite, compile_kernel(KernelSource(text=source, name="other"), "sm_90"))


def store_other_architecture(suite):
    source = 'extern "C" __global__ void work(const float* a, float* b, int n) { b[n] = a[n]; }'
    store_cubin(suite, compile_kernel(KernelSource(text=source, name="work"), "sm_80"))


def record_impossible_launch(suite):
    edit_baseline(suite, lambda record: record.update(block=[2048, 1, 1]))


def refuse(suite, gpu="Refusing"):
    """Let the driver refuse the baseline's machine code."""
    suite.edit("conftest.py", "def work(", f"{REFUSING}\n\ndef work(")
    suite.edit("conftest.py", "return SimulatedGpu(", f"return {gpu}(")


OBSTACLES = {
    delete_cubin: "*the baseline's machine code is missing. Restore it from version control*",
    take_cubin_off_the_record: "the baseline was recorded without its machine code. Restore the baselines*",
    alter_cubin: "*the machine code of the record of * is refused: *the content does not match the *",
    store_other_parameters: "*the parameters changed from (8 bytes, 8 bytes, 8 bytes, 4 bytes) to (8 bytes, *",
    store_other_kernel: "*it has no kernel work; it has other*",
    store_other_architecture: "*for sm_80*",
    record_impossible_launch: "the baseline cannot be launched as it was: *is beyond the device*s limit of (1024, *",
    refuse: "the baseline's machine code cannot be loaded: no kernel image*",
}


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda obstacle: obstacle.__name__)
def test_what_cannot_run_beside_its_baseline_is_not_comparable(recorded, obstacle):
    """Both times and the remedy are shown; nothing that is refused is loaded."""
    slower(recorded, 120)
    obstacle(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*work  NOT-COMPARABLE  on simulated-gpu (time)  x1.12?  6.* us -> 7.* us",
            "*against the recorded time",
            f"    {OBSTACLES[obstacle]}",
        ]
    )
    recorded.run("--gpuperf", "--gpuperf-open=fail", *ONE).assert_outcomes(failed=1)


# --- the machine ---------------------------------------------------------------------------------


def test_slower_kernel_is_slower_on_another_gpu_too(recorded):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(uuid='GPU-2', ")
    slower(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])


def test_slower_machine_is_no_slower_kernel(recorded):
    """Its distance from the record is noted, with changed code and with unchanged."""
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(slowdown=1.1, ")
    recorded.change_code()
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines(
        [r"  work .* x(1.00|0.99)\d \[.*\] .* SAME", r"  doubling .* x1\.(09|1)\d* .* UNCHANGED"]
    )
    noted = [one["notes"] for one in judgements_of(recorded) if one["kind"] == "time"]
    assert noted == [["x1.10 of its recorded time"]] * 3


def test_slower_compiler_is_named(recorded):
    slower(recorded, 120)
    text = (recorded.path / "work.cu").read_text()
    source = KernelSource(text=text, name="work", path=recorded.path / "work.cu", options=("-DSTEPS=120",))
    same = {"source": compile_kernel(source, "sm_90").source_hash, "toolchain": "nvrtc 12.9.41"}
    edit_baseline(recorded, lambda record: record["identity"].update(same))
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "work  SLOWER *",
            "    tolerance *, paired,*",
            "*also: instructions 116 -> 136,*",
            "*the source is that of the baseline; the compiler changed from nvrtc 12.9.41 to nvrtc 13*",
        ]
    )


def test_baseline_of_another_timer_is_paired(recorded):
    edit_baseline(recorded, lambda record: record.update(timer="cupti"))
    recorded.run("--gpuperf", *ONE).stdout.re_match_lines([r"  work .*UNCHANGED"])
    slower(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER *", "    tolerance *, paired,*"])
    assert "of its recorded time" not in result.stdout.str()


def test_suite_that_cannot_be_decided_blames_the_machine(recorded, monkeypatch):
    monkeypatch.setattr(compare, "MOST_BLOCKS", 6)  # not even unanimous ones prove anything to 1 in 200
    result = recorded.run("--gpuperf", "--gpuperf-time=all")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["next: give undecided workloads more time: *; where many stay undecided, the machine is too noisy: *"]
    )


# --- at the end of the test ----------------------------------------------------------------------


def test_skip_behind_a_workload_hides_no_regression(recorded):
    slower(recorded)
    recorded.edit("test_suite.py", "    assert result.time_ns > 0", "    pytest.skip('not here')")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  on *", "*, in two processes; *"])


IN_A_SUBTEST = """
def test_work(cuda_kernel, gpu, gpuperf, subtests):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a, b = gpu.random(1024, seed=1), gpu.empty(1024)
    with subtests.test("one"):
        gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)))
    with subtests.test("two"):
        pass
"""


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="subtests are new in pytest 9")
def test_regression_of_a_subtest_is_confirmed_at_the_end_of_its_test(gpu_suite):
    gpu_suite.write("test_suite.py", IN_A_SUBTEST)
    gpu_suite.run(*RECORD)
    slower(gpu_suite)
    result = gpu_suite.run("--gpuperf", "--junitxml=junit.xml")
    assert result.ret == 1
    result.stdout.re_match_lines([rf"work  SLOWER  {ON}", r" +proven to be more than 0.5 % slower, in two processes.*"])
