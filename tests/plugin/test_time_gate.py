"""``pytest --gpuperf`` on a (simulated) GPU: changed code is decided beside its baseline's own machine code."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import pytest
from evidence_tree import read_evidence, write_evidence
from suite_under_test import FILES, RECORD, REFUSING, TEST, baselines_of

from pytest_gpuperf.baselines.layout import cubin_path
from pytest_gpuperf.judge.decision import share
from pytest_gpuperf.run import Run
from pytest_gpuperf.timing import blocks

ONE = ("-k", "1024")
WORK = "test_work[1024]"
ON = r"on simulated-gpu \(time\)"
STEP = r"x1\.\d+ \[1.*\]  \S+ us -> \S+ us"
PAIRED = r" +tolerance 1 %, paired, \d+\+\d+ blocks"


def slower(suite, steps=104):
    suite.edit("test_suite.py", "-DSTEPS=100", f"-DSTEPS={steps}")


def record_of(suite, test=WORK):
    """The time baseline of a test's one workload."""
    (record,) = read_evidence(suite.times)["tests"][test].values()
    return record


def edit_record(suite, test, **changes):
    """Change the same on disk; a dict is merged with what is there."""
    tree = read_evidence(suite.times)
    (record,) = tree["tests"][test].values()
    for name, value in changes.items():
        record[name] = {**record[name], **value} if isinstance(value, dict) else value
    write_evidence(suite.times, tree)


# --- SAME, FASTER, SLOWER ------------------------------------------------------------------------


def test_unchanged_code_is_unchanged(recorded):
    """A comment and names change nothing; without CUPTI the run says what is lost, unless a timer was asked for."""
    recorded.edit("work.cu", "// Copies", "// Copies, renamed and all")
    recorded.edit("work.cu", "float x =", "float value =")
    text = (recorded.path / "work.cu").read_text().replace("x = x *", "value = value *").replace("= x;", "= value;")
    recorded.write("work.cu", text)
    result = recorded.run("--gpuperf", "--junitxml=junit.xml")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines([r".*work +\S+ us -> \S+ us ±\S+ % .* \S+ GB/s.*UNCHANGED"])
    lost = "*: CUDA graphs measure the times. Changes of kernels shorter than 20 us are harder to detect*"
    result.stdout.fnmatch_lines([lost])
    junit = (recorded.path / "junit.xml").read_text()
    assert '<property name="gpuperf.work.simulated-gpu" value="UNCHANGED"' in junit
    untimed = recorded.run("--gpuperf", "--gpuperf-time=changed", "--gpuperf-timer=graph", "-v")
    untimed.assert_outcomes(passed=3)
    untimed.stdout.re_match_lines([r"  work +UNCHANGED"])
    untimed.stdout.no_fnmatch_line(lost)


def test_slower_kernel_fails_after_two_processes(recorded):
    slower(recorded)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        rf"work  SLOWER  {ON}  {STEP}$",
        rf"{PAIRED}, E=\S+ \(need 4.9e3\), interval 95 % anytime$",
        r" +also: instructions 116 -> 120, code size .*instructions: fp32 100 -> 104",
        r" +proven to be more than 1 % slower, in two processes; the source and its machine code changed",
    ], consecutive=True)  # fmt: skip


@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_workload_and_process_has_its_coin_and_each_test_its_share(recorded, workers):
    """The share is that of the tests collected, in whichever order or worker they run."""
    slower(recorded, 120)
    result = recorded.run("--gpuperf", "-n", workers)
    result.assert_outcomes(failed=2, passed=1)
    assert "work  SLOWER" in result.stdout.str()
    times = [one["time"] for one in recorded.judgements() if one["verdict"] == "SLOWER"]
    assert [len(one["seeds"]) for one in times] == [2, 2]
    assert len({seed for one in times for seed in one["seeds"]}) == 4
    assert [one["log_e_needed"] for one in times] == [pytest.approx(8.5, abs=0.01)] * 2


def test_faster_kernel_passes_with_a_word_and_fails_when_strict(recorded):
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=60")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    why = "the baseline is stale: accept the gain with pytest --update-baselines, or an equal loss later goes unnoticed"
    result.stdout.fnmatch_lines([f"1 workload is FASTER or BETTER than the baseline: {why}"])
    strict = recorded.run("--gpuperf", "--gpuperf-strict", *ONE)
    assert strict.ret == 1
    strict.stdout.re_match_lines([
        r"work  FASTER  on simulated-gpu \(time\)  x0\.\d+ \[.*us$",
        r"    tolerance .*, paired, \d+ blocks, interval 95 % anytime$",
    ])  # fmt: skip
    assert strict.stdout.str().count(why) == 1


def test_another_launch_of_the_same_code_is_paired(recorded):
    recorded.edit("test_suite.py", "grid=8", "grid=16")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1.00\d|0.99\d) \[.*\] .* SAME"])
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(block_ns=50, ")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([
        rf"work  SLOWER  {ON}  {STEP}$",
        PAIRED,
        r" +proven to be more than 1 % slower, in two processes; the machine code is that of the baseline; "
        r"the launch changed from grid=\(8, 1, 1\) .* to grid=\(16, 1, 1\)",
    ])  # fmt: skip


COOPERATIVE = """

def pytest_terminal_summary(terminalreporter):
    if DEVICES:
        seen = sorted((cooperative, str(cluster), pdl) for _, cooperative, cluster, pdl in DEVICES[0].launched_as)
        terminalreporter.write_line(f"launched as: {seen}")
"""


def test_cooperative_launches_and_clusters_are_launched_as_recorded(gpu_suite):
    gpu_suite.edit("conftest.py", "    return Sim", "    DEVICES.append(Sim")
    gpu_suite.edit("conftest.py", "work})", "work}))\n    return DEVICES[0]\n\nDEVICES = []" + COOPERATIVE)
    gpu_suite.edit("test_suite.py", "args=(a, b, 512)", "args=(a, b, 512), cooperative=True, cluster=2, pdl=True")
    gpu_suite.run(*RECORD, "-k", "other").assert_outcomes(passed=1)
    assert "shared=0 cooperative cluster=(2, 1, 1) pdl" in gpu_suite.times.read_text()
    result = gpu_suite.run("--gpuperf", "-k", "other")
    result.stdout.fnmatch_lines(["*doubling*UNCHANGED", "launched as: [[](True, '(2, 1, 1)', True)[]]"])
    gpu_suite.edit("test_suite.py", "cooperative=True, cluster=2, pdl=True", "cluster=1")
    result = gpu_suite.run("--gpuperf", "-k", "other")
    result.stdout.fnmatch_lines(["*doubling*SAME", "launched as: [[]*(True, '(2, 1, 1)', True)[]]"])


# --- when the baseline cannot run again ----------------------------------------------------------


def test_what_cannot_run_beside_its_baseline_is_not_comparable(recorded):
    """Both times and the remedy are shown; nothing that is refused is loaded.  Missing machine code fails the test."""
    slower(recorded, 120)
    recorded.edit("other.cu", "a[i] * 2.0f", "a[i] * 2.5f")
    cubin_path(recorded.path / "baselines", record_of(recorded, "test_other")["cubin"]).unlink()
    edit_record(recorded, "test_work[2048]", block=[2048, 1, 1])
    recorded.edit("conftest.py", "def work(", f"{REFUSING}\n\ndef work(")
    recorded.edit("conftest.py", "return SimulatedGpu(", "return Refusing(")
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*work  NOT-COMPARABLE  on simulated-gpu (time)  x1.12?  6.* us -> 7.* us", "*against the recorded time"]
    )
    for words in (
        "    the baseline's machine code cannot be loaded: no kernel image*",
        "    the baseline cannot be launched as recorded: *is beyond the device*s limit of (1024, *",
        "*the baseline's machine code is missing. Restore it from version control*",
    ):
        result.stdout.fnmatch_lines([words])
    recorded.run("--gpuperf", "--gpuperf-open=fail").assert_outcomes(failed=3)


# --- other arguments than on record: the work as it is against the work as it was -------------------


def test_each_side_gets_the_arguments_of_its_own_launch(recorded):
    """One more parameter, and another number: a slower kernel is red all the same, and as fast a one is not."""
    recorded.edit("work.cu", "int n)", "int n, float scale)")
    recorded.edit("work.cu", "b[i] = x;", "b[i] = x * scale;")
    recorded.edit("test_suite.py", "args=(a, b, size)", "args=(a, b, size - 1, 2.0)")
    kept = "GIVEN = open('given', 'w')\n\ndef pytest_unconfigure():\n    GIVEN.close()\n\n"
    recorded.edit("conftest.py", "def work(a, b, n)", kept + "def work(a, b, n, scale=1.0)")
    recorded.edit("conftest.py", "    b[:] = a", "    b[:] = a\n    GIVEN.write(f'{n},{scale} ')")
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", "--gpuperf-tolerance=0.06", *ONE)  # it has 4 % more code
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"  work .* x(1\.0|0\.9)\d* \[.*\] .* SAME"])
    given = (recorded.path / "given").read_text().split()
    assert set(given) == {"1023,2.0", "1024,1.0"}
    assert given.count("1024,1.0") > 50
    slower(recorded, 170)
    red = recorded.run("--gpuperf", "--gpuperf-open=warn", *ONE)
    red.assert_outcomes(failed=1)
    words = "3 arguments became 4; the baseline ran with its own arguments"
    red.stdout.re_match_lines([r"work  SLOWER  .* x1\.[3-6]\d+ ", r" .* paired, \d+\+\d+ blocks", rf" .*{words}"])


def test_arguments_that_cannot_be_formed_again_are_not_comparable(recorded):
    """Arrays of other shapes, and what is no argument."""
    slower(recorded, 170)
    recorded.edit("test_suite.py", "gpu.random(size,", "gpu.random(size + 64 * (size == 2048),")
    recorded.times.write_text(recorded.times.read_text().replace("int32=1024", "object=7"))
    result = recorded.run("--gpuperf", "--gpuperf-open=fail", "-k", "work")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["work  NOT-COMPARABLE *", "*cannot be launched as recorded: *argument 3 was '*"])
    result.stdout.re_match_lines([
        r".*work  NOT-COMPARABLE  on simulated-gpu \(time\)  x1\.[3-6]\d+  6\.\d+ us -> \d+\.?\d* us",
        r" .*against the recorded time",
        r" +the baseline cannot be launched as recorded: the record names 2 arrays float32\[2048\], and .*: record "
        r"the baseline again .*; argument 1 was float32\[2048\] and is float32\[2112\]",
    ])  # fmt: skip


@pytest.mark.parametrize(("steps", "flag", "status", "words"), [
    (108, "--gpuperf-min-delta=0.4", 0, "SLOWER"), (108, "--gpuperf-min-delta=0.2", 1, "tolerance 2.96 % (0.2 us)"),
    (108, "--gpuperf-min-delta=0.05", 1, "tolerance 1 %, paired"), (103, "--gpuperf-tolerance=loose", 0, "SLOWER"),
    (103, "--gpuperf-tolerance=tight", 1, "tolerance 0.5 %, paired"),
])  # fmt: skip
def test_accepted_slowdown_is_a_share_or_microseconds(recorded, steps, flag, status, words):
    """A step more takes about 40 ns of 6.6 us."""
    slower(recorded, steps)
    result = recorded.run("--gpuperf", flag, *ONE)
    assert (result.ret, words in result.stdout.str()) == (status, bool(status)), result.stdout.str()
    (judged,) = (one["time"] for one in recorded.judgements() if one["kind"] == "time")
    assert (judged.get("min_delta_us", 0) > 0) == (flag in ("--gpuperf-min-delta=0.4", "--gpuperf-min-delta=0.2"))


# --- the machine ---------------------------------------------------------------------------------


def test_slower_machine_is_no_slower_kernel(recorded):
    """Its distance from the record is noted, with changed code and with unchanged."""
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(slowdown=1.1, ")
    recorded.change_code()
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines(
        [r"  work .* x(1.00|0.99)\d \[.*\] .* SAME", r"  doubling .* x1\.(09|1)\d* .* UNCHANGED"]
    )
    noted = [one["notes"] for one in recorded.judgements() if one["kind"] == "time"]
    assert noted == [["x1.10 of its recorded time"]] * 3


@pytest.mark.parametrize(("theirs", "failed"), [(0.0, 1), (0.2, 0)], ids=["of the candidate", "of both"])
def test_rare_slow_launches_fail_the_side_that_has_more(recorded, monkeypatch, theirs, failed):
    """A fifth takes five times as long: SLOWER by the mean, which the midmean does not see; in a suite of 200 tests."""
    monkeypatch.setattr(Run, "next_share", lambda self, node_id: share(200, 1))
    of = f"({theirs} if one.cubin_hash == {record_of(recorded)['cubin']!r} else 0.2, 5.0)"
    recorded.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(tail_of=lambda one: {of}, ")
    recorded.change_code()
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=failed, passed=1 - failed)
    if failed:
        words = r".*rare slow samples, the mean is x1\.[4-9]\d* and the midmean x(1(\.0\d*)?|0\.99\d*);.*"
        result.stdout.re_match_lines([r"work  SLOWER .*", words])


def test_sustained_slots_are_those_of_its_marker(recorded, monkeypatch):
    monkeypatch.setattr(blocks, "BURST_S", 0.004)  # so that it is undone; the second process has it of the conftest
    short = "\n__import__('pytest_gpuperf.timing.blocks', fromlist=['']).BURST_S = 0.004\n"
    recorded.append("conftest.py", short)
    slower(recorded, 120)
    assert "in sustained slots" not in recorded.run("--gpuperf", *ONE).stdout.str()
    recorded.edit("test_suite.py", "@pytest.mark.param", "@pytest.mark.gpuperf(sustained=True)\n@pytest.mark.param")
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"work  SLOWER  on simulated-gpu \(time\) ", r" +in sustained slots"])


# --- at the end of the test ----------------------------------------------------------------------

ENDS = """
import pytest, pytest_gpuperf

def run(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a, b = gpu.random(1024, seed=1), gpu.empty(1024)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, 1024)))

def test_skips(cuda_kernel, gpu, gpuperf):
    run(cuda_kernel, gpu, gpuperf)
    pytest.skip("not here")

@pytest.mark.xfail(raises=pytest_gpuperf.PerformanceRegression, reason="known", strict=True)
def test_expected(cuda_kernel, gpu, gpuperf):
    run(cuda_kernel, gpu, gpuperf)
"""
SUBTEST = """
def test_subtests(cuda_kernel, gpu, gpuperf, subtests):
    with subtests.test("one"):
        run(cuda_kernel, gpu, gpuperf)
    with subtests.test("two"):
        pass
"""


def test_end_of_a_test_hides_no_regression(gpu_suite, shared_folder: Path):
    """A skip behind it and a subtest; an expected one is reported and does not fail, unless it is gone."""
    has_subtests = pytest.version_tuple >= (9, 0)
    gpu_suite.write("test_suite.py", f"{ENDS}{SUBTEST}" if has_subtests else ENDS)
    text = (gpu_suite.path / "test_suite.py").read_text()
    files = {**FILES, "test_suite.py": text.replace("@pytest.mark.xfail", "@pytest.mark.usefixtures() #")}
    shutil.copytree(baselines_of(shared_folder / "ends", files, *RECORD), gpu_suite.path / "baselines")
    gone = gpu_suite.run("--gpuperf", "-k", "expected")
    gone.assert_outcomes(failed=1)
    gone.stdout.fnmatch_lines(["*XPASS(strict)*known*"])
    slower(gpu_suite, 125)
    result = gpu_suite.run("--gpuperf")
    assert result.parseoutcomes() == {"failed": 1 + has_subtests, "xfailed": 1}
    found = [one["verdict"] for one in gpu_suite.judgements() if one["kind"] == "time"]
    assert found == ["SLOWER"] * (2 + has_subtests)
    assert result.stdout.str().count(", in two processes; ") >= 2


RERUN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
"""As pytest-rerunfailures does."""


def test_last_run_of_a_test_counts(recorded):
    """One that passes when it is run again has passed, with those verdicts; a regression is red again."""
    recorded.append("conftest.py", RERUN)
    recorded.write("test_suite.py", TEST.rstrip() + "\n    RUNS.append(1)\n    assert len(RUNS) == 2\n\nRUNS = []\n")
    recorded.run("-k", "other").assert_outcomes(passed=1)
    slower(recorded, 120)
    result = recorded.run("--gpuperf", "-k", "other or 1024")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["work  SLOWER  on *"])
    found = sorted(one["verdict"] for one in recorded.judgements() if one["kind"] == "time")
    assert found == ["SLOWER", "UNCHANGED"]


# --- kernels of a second: decided in seventy launches, both processes and everything included ------------

SECOND = 1e5
"""Times the kernel's own ten microseconds."""
MOST_LAUNCHES = 70


@pytest.fixture
def long(recorded):
    """Its record and its kernel take about a second, 8 ms of the host's; launches are counted over all processes."""
    content = read_evidence(recorded.times)
    work = content["tests"]["test_work[1024]"]["work"]
    work["rounds"] = [one * SECOND for one in work["rounds"]]
    write_evidence(recorded.times, content)
    launches = recorded.path / "launches"
    recorded.edit("conftest.py", "SimulatedGpu(", f"SimulatedGpu(slowdown={SECOND}, sample_sd=0.0005, ")
    recorded.edit(
        "conftest.py", "    b[:] = a",
        f"    b[:] = a\n    __import__('time').sleep(0.008)\n"
        f"    with open({str(launches)!r}, 'a') as log: log.write('.')",
    )  # fmt: skip
    return recorded


def launches(suite):
    return len((suite.path / "launches").read_text())


def test_slower_kernel_of_a_second_fails_within_seventy_launches(long, monkeypatch):
    monkeypatch.setattr(Run, "next_share", lambda self, node_id: share(200, 1))  # of a suite of 200 tests
    slower(long)
    result = long.run("--gpuperf", "--gpuperf-budget=0.05", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"work  SLOWER  on simulated-gpu \(time\)  x", r" .* paired, \d+\+\d+ blocks, "])
    assert launches(long) <= MOST_LAUNCHES


# --- arrays that take 60 % of the GPU's memory --------------------------------------------------------

LIMIT = 16 << 20
SIZE = LIMIT * 6 // 10 // 2 // 4
"""Elements of each of the two arrays."""
DEVICE = f"""
def pytest_gpuperf_device(config, worker):
    from simulated_gpu import LimitedGpu
    return LimitedGpu(config.rootpath / "memory", {LIMIT}, implementations={{"work": work}}, sample_sd=0.001)
"""
LARGE = f"""
def test_large(cuda_kernel, gpu, gpuperf):
    kernel = cuda_kernel("work.cu", "work", options=["-DSTEPS=100"])
    a = gpu.random({SIZE}, seed=1)
    b = gpu.empty_like(a)
    gpuperf(kernel.launch(grid=8, block=256, args=(a, b, {SIZE})), check=lambda: bool((b == a).all()))
"""


@pytest.fixture
def large(gpu_suite):
    """Recorded, and slower now."""
    text = (gpu_suite.path / "conftest.py").read_text()
    gpu_suite.write("conftest.py", text[: text.index("def pytest_gpuperf_device")] + DEVICE)
    gpu_suite.write("test_suite.py", LARGE)
    result = gpu_suite.run(*RECORD)
    assert result.ret == 0, result.stdout.str()
    gpu_suite.run("--gpuperf").stdout.fnmatch_lines(["*UNCHANGED*"])
    slower(gpu_suite, 150)
    yield gpu_suite
    gc.collect()


def test_large_arrays_are_gated_and_confirmed_where_they_are(large):
    result = large.run("--gpuperf")
    result.assert_outcomes(failed=1)
    kept = "*its arrays stayed at their addresses: there is no room for 0.0143 GB of copies"
    result.stdout.fnmatch_lines(["*SLOWER*", "*paired*", "*in two processes;*", kept])
