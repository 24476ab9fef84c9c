"""``--update-baselines``: what it takes, what it leaves alone, what it refuses."""

from __future__ import annotations

import shutil

import pytest
from evidence_tree import read_evidence
from suite_under_test import HOG, TEST

from pytest_gpuperf.baselines.store import BaselineStore

MANY = """
import pytest

@pytest.mark.parametrize("number", range(200))
def test_many(cuda_kernel, gpu, gpuperf, number):
    kernel = cuda_kernel("other.cu", "other")
    a = gpu.random(512, seed=2)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=2, block=32 + 32 * (number % 8), args=(a, b, 512)))
"""


def static_file(suite, module="test_suite", arch="sm_90"):
    return read_evidence(suite.path / "baselines" / arch / f"{module}.jsonl")


def test_static_evidence_is_recorded_without_a_gpu(suite):
    result = suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    assert result.ret == 0
    assert set(suite.baseline_files()) == {"manifest.json", "sm_80/test_suite.jsonl", "sm_90/test_suite.jsonl"}
    result.stdout.fnmatch_lines(["6 baselines written"])
    result.stdout.no_fnmatch_line("*no baseline*")
    first = suite.baseline_files()
    assert suite.run("--gpuperf").ret == 0
    suite.run("--update-baselines=all", "--gpuperf-arch=sm_80,sm_90")
    assert suite.baseline_files() == first


FAILS = ("assert result.time_ns > 0", "assert size == 1024")
NOT_RECORDED = "2 workloads not recorded: a test that fails, or is expected to, records nothing"
NOTHING_WRITTEN = {
    # an edit of the suite, flags, and then: the exit status, and why nothing was written
    "new": (None, ["--update-baselines=new"], 0, "all are up to date"),
    "changed": (None, ["--update-baselines"], 0, "all are up to date"),
    "all": (None, ["--update-baselines=all"], 0, "all are up to date"),
    "a failed test": (FAILS, ["--update-baselines"], 1, "all are up to date; failed tests record nothing"),
    "a broken file": ("broken", ["--update-baselines=all"], 1, "every test with a workload failed"),
    "no path": (None, ["--update-baselines", "nowhere.py"], 4, "no test ran"),
    "a mode apart": (
        None,
        ["--update-baselines", "new"],
        4,
        "no test ran (the mode is written --update-baselines=new)",
    ),
}


@pytest.mark.parametrize("case", NOTHING_WRITTEN)
def test_update_that_writes_nothing_says_why(suite, case):
    edit, flags, status, why = NOTHING_WRITTEN[case]
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    if edit == "broken":
        suite.write("baselines/sm_90/test_suite.jsonl", "{")
    elif edit:
        suite.edit("test_suite.py", *edit)
    before = suite.baseline_files()
    result = suite.run(*flags)
    assert result.ret == status
    result.stdout.fnmatch_lines([f"0 baselines written: {why}"])
    assert suite.baseline_files() == before


def test_changed_evidence_is_shown_with_what_differs(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    suite.edit("work.cu", "x * 1.5f", "x * 1.5")
    suite.edit("test_suite.py", "grid=2, block=256", "grid=4, block=128")
    suite.run("--update-baselines=all").stdout.re_match_lines([
        r"baseline +target +before +after +change",
        r"  work +sm_90 .* registers \d+ -> \d+, instructions: fp64 0 -> \d+, instructions .*, and \d+ more$",
        r".* block 256x1x1 -> 128x1x1",
    ])  # fmt: skip


WRONG = ("conftest.py", '"other": work', '"other": lambda a, b, n: None')
XFAIL = ("test_suite.py", "def test_other", "@pytest.mark.xfail(reason='wrong, and known')\ndef test_other")
SLOW = ("test_suite.py", "assert result.time_ns > 0", "pytest.xfail('slow') if size == 2048 else None")
BEHIND = ("test_suite.py", "assert result.time_ns > 0", "assert result.time_ns < 0")
NOT_TAKEN = {
    "a failed check": ([WRONG], {"test_work[1024]", "test_work[2048]"}, {"test_work[1024]", "test_work[2048]"}),
    "a failure behind its check": ([BEHIND], {"test_other"}, {"test_other"}),
    "an expected failure": ([WRONG, XFAIL, SLOW], {"test_work[1024]"}, {"test_work[1024]"}),
}


@pytest.mark.parametrize("case", NOT_TAKEN)
def test_update_never_takes(gpu_suite, case):
    edits, static, timed = NOT_TAKEN[case]
    for edit in edits:
        gpu_suite.edit(*edit)
    assert gpu_suite.run("--gpuperf").ret == (0 if case == "an expected failure" else 1)
    assert gpu_suite.baseline_files() == {}, "nothing but an update writes"
    gpu_suite.run("--update-baselines")
    assert set(static_file(gpu_suite)["toolchains"].popitem()[1]) == static
    assert set(read_evidence(gpu_suite.path / "baselines/simulated-gpu/test_suite.jsonl")["tests"]) == timed


def test_recording_all_again_replaces_a_time(recorded):
    first = recorded.baseline_files()
    recorded.run("--update-baselines").assert_outcomes(passed=3)
    assert recorded.baseline_files() == first
    path = recorded.path / "baselines/simulated-gpu/test_suite.jsonl"
    (before,) = read_evidence(path)["sessions"]
    recorded.run("--update-baselines=all", "-k", "other")
    file = read_evidence(path)
    assert len(file["sessions"]) == 2
    assert before["id"] not in {one["session"] for one in file["tests"]["test_other"]["doubling"]["rounds"]}
    assert len(file["tests"]["test_work[1024]"]["work"]["rounds"]) == 4


BEFORE_ITS_LAUNCHES = """
def test_k(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("hog.cu", "hog")
    a = gpu.random(4096, seed=1)
    assert a.sum() > 0
    for warps in (1, 2):
        gpuperf(kernel.launch(grid=1, block=32 * warps, args=(a, gpu.empty(32 * warps))), name=f"warps {warps}")
"""


def test_a_kernel_that_stops_before_its_launches_is_accepted_for_the_workloads_that_launch_it(gpu_suite):
    gpu_suite.write("hog.cu", HOG)
    gpu_suite.write("test_suite.py", BEFORE_ITS_LAUNCHES)
    gpu_suite.run("--update-baselines", "--gpuperf-disturbed")
    before = static_file(gpu_suite)["toolchains"].popitem()[1]["test_k"]
    conftest = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", "")
    gpu_suite.edit("hog.cu", "void hog", "void __launch_bounds__(1024, 2) hog")
    assert gpu_suite.run("--gpuperf").ret == 1
    assert gpu_suite.run("--update-baselines").ret == 0
    after = static_file(gpu_suite)["toolchains"].popitem()[1]["test_k"]
    assert {name: record["block"] for name, record in after.items()} == {
        name: record["block"] for name, record in before.items()
    }  # fmt: skip
    gpu_suite.run("--gpuperf", "--gpuperf-open=fail").stdout.fnmatch_lines(["1 workload: 1 UNCHANGED"])
    gpu_suite.write("conftest.py", conftest)
    on_a_gpu = gpu_suite.run("--gpuperf", "--gpuperf-open=fail").stdout.str()
    assert "warps 1  SLOWER  on simulated-gpu" in on_a_gpu
    assert "WORSE" not in on_a_gpu
    assert "NOT-MEASURED" not in on_a_gpu


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_an_update_of_all_puts_lost_machine_code_back(suite, how):
    suite.run("--update-baselines", "--gpuperf-arch=sm_80,sm_90")
    cubins = sorted((suite.path / "baselines/cubins").rglob("*.z"))
    before = [path.read_bytes() for path in cubins]
    for path in cubins:
        path.unlink() if how == "missing" else path.write_bytes(b"x")
    suite.run("--update-baselines=all").stdout.fnmatch_lines(["6 baselines written"])
    assert [path.read_bytes() for path in cubins] == before
    suite.run("--update-baselines=all").stdout.fnmatch_lines(["0 baselines written: all are up to date"])


def test_another_launch_is_recorded_where_the_machine_code_is_lost(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    shutil.rmtree(suite.path / "baselines/cubins")
    suite.edit("test_suite.py", "grid=2, block=256", "grid=4, block=128")
    result = suite.run("--update-baselines=all", "test_suite.py::test_other")
    result.stdout.fnmatch_lines(["1 baseline written"])
    assert result.ret == 0


def test_only_the_changed_workload_is_rewritten(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90")
    before = static_file(suite)["toolchains"]
    suite.edit("other.cu", "a[i] * 2.0f", "a[i] / 3.0f")
    suite.edit("work.cu", "// Copies", "// Now copies")
    kept = suite.run("--update-baselines", "--gpuperf-arch=sm_90")  # it passes: nothing that gates got worse
    kept.stdout.fnmatch_lines(["0 baselines written: no change is proven here; *"])
    suite.run("--update-baselines=all", "--gpuperf-arch=sm_90")
    after = static_file(suite)["toolchains"]
    toolchain = next(iter(before))
    changed = {test for test in after[toolchain] if after[toolchain][test] != before[toolchain][test]}
    assert changed == {"test_other"}


def test_new_takes_only_what_has_no_baseline(suite):
    suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-k", "work")
    suite.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=50")
    before = static_file(suite)["toolchains"]
    suite.run("--update-baselines=new", "--gpuperf-arch=sm_90")
    after = static_file(suite)["toolchains"]
    toolchain = next(iter(before))
    assert set(after[toolchain]) - set(before[toolchain]) == {"test_other"}
    assert after[toolchain]["test_work[1024]"] == before[toolchain]["test_work[1024]"]


def test_an_interrupted_update_writes_nothing_and_says_so(suite):
    suite.edit("test_suite.py", "def test_other", "def test_stop():\n    raise KeyboardInterrupt\n\ndef test_other")
    result = suite.run("--update-baselines", "--gpuperf-arch=sm_90", subprocess=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["ERROR: the run was interrupted: no baseline was written"])
    assert suite.baseline_files() == {}


def test_update_is_refused_under_ci(suite, monkeypatch):
    monkeypatch.setenv("CI", "1")
    result = suite.run("--update-baselines")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--update-baselines: refused because CI is set*--gpuperf-allow-ci-update*"])
    assert suite.baseline_files() == {}
    assert suite.run("--update-baselines", "--gpuperf-allow-ci-update").ret == 0
    assert suite.baseline_files()


def test_two_hundred_workloads_on_four_workers_are_all_recorded(suite):
    (suite.path / "test_suite.py").unlink()
    suite.write("test_many.py", MANY)
    result = suite.run("--update-baselines", "--gpuperf-arch=sm_90", "-n", "4", subprocess=True)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["200 baselines written"])
    tests = static_file(suite, "test_many")["toolchains"].popitem()[1]
    assert set(tests) == {f"test_many[{n}]" for n in range(200)}


def test_record_has_the_rounds_of_its_run_and_the_machine_code(gpu_suite):
    assert gpu_suite.run("--update-baselines", "-k", "other").ret == 0
    file = read_evidence(gpu_suite.path / "baselines/simulated-gpu/test_suite.jsonl")
    record = file["tests"]["test_other"]["doubling"]
    assert len(record["rounds"]) == 4
    assert {one["session"] for one in record["rounds"]} == {file["sessions"][0]["id"]}
    assert BaselineStore(gpu_suite.path / "baselines").cubin(record["cubin"]).startswith(b"\x7fELF")


def test_tests_of_one_file_name_in_two_folders_are_recorded_as_they_are_run(gpu_suite):
    for folder in ("one", "two"):
        (gpu_suite.path / folder).mkdir()
        gpu_suite.write(f"{folder}/test_same.py", TEST.replace('"other.cu"', '"../other.cu"'))
    result = gpu_suite.run(
        "--update-baselines", "--import-mode=importlib", "-k", "other", "one", "two",
        subprocess=True,
    )  # fmt: skip
    assert result.ret == 0, result.stdout.str()
    assert len(list((gpu_suite.path / "baselines/simulated-gpu").rglob("test_same.jsonl"))) == 2


def test_an_accepted_change_is_shown_with_old_and_new(recorded):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=120")
    result = recorded.run("--update-baselines", "-k", "1024")
    assert result.ret == 0
    result.stdout.re_match_lines([r"  work +simulated-gpu +\S+ us +\S+ us +\+1\d\.\d %"])
    assert recorded.run("--gpuperf", "-k", "1024").ret == 0


def test_a_disturbed_measurement_is_refused_unless_forced(gpu_suite):
    gpu_suite.edit(
        "conftest.py",
        "return SimulatedGpu(",
        "from pytest_gpuperf.model.device_facts import DeviceState\n    "
        "return SimulatedGpu(state=DeviceState(throttle_reasons=('power cap',)), ",
    )
    flags = ("--update-baselines", "-k", "other")
    result = gpu_suite.run(*flags)
    result.stdout.fnmatch_lines(["*refused*throttled*power cap*"])
    assert result.ret == 1
    assert "simulated-gpu/test_suite.jsonl" not in gpu_suite.baseline_files()
    assert gpu_suite.run(*flags, "--gpuperf-disturbed").ret == 0
    assert "simulated-gpu/test_suite.jsonl" in gpu_suite.baseline_files()
