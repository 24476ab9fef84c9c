"""``--gpuperf-ncu``: counters of every workload by a process under ncu: judged, recorded, or why not."""

from __future__ import annotations

import json

import pytest
from counters_in_report import counters_in
from evidence_tree import read_evidence, write_evidence

NODES = {"test_suite.py::test_work[1024]", "test_suite.py::test_work[2048]", "test_suite.py::test_other"}
INSTRUCTIONS, OWN = "smsp__inst_executed.sum", "gpu__own_metric.sum"
GATE = ("--gpuperf", "--gpuperf-ncu")
REPORT = "--gpuperf-report=all.json"


def collected(suite, *flags):
    result = suite.run(*flags, REPORT)
    return result, counters_in(suite.path / "all.json")


def ask(suite, metrics):
    suite.edit("test_suite.py", 'name="doubling"', f'name="doubling", metrics={metrics}')


def mark(suite, test, metrics):
    suite.edit("test_suite.py", f"def {test}", f"@pytest.mark.gpuperf(metrics={metrics})\ndef {test}")


def rounds(suite):
    tests = read_evidence(suite.times)["tests"]
    return {test: next(iter(work.values()))["rounds"] for test, work in tests.items()}


def test_one_process_collects_for_every_workload(ncu_suite):
    """Counters alone time nothing; what is new is recorded with the flags of the run."""
    result, found = collected(ncu_suite, "--gpuperf-ncu", "--gpuperf-tolerance=0.01")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines([
        "gpuperf: gating counters only, counters default*", "gpuperf: counting 3 tests under ncu 2025.3.1.0",
        "gpuperf: counters of 3 workloads in *", "counters of one run*instructions*DRAM read*verdict",
        "  doubling * NEW", "counters: 3 NEW",
        "next: record 3 new workloads: pytest --gpuperf-ncu --update-baselines=new --gpuperf-tolerance=0.01, "
        "and commit the files",
    ])  # fmt: skip
    assert "device time" not in result.stdout.str()
    assert "registers / spilled" not in result.stdout.str()
    (call,) = ncu_suite.ncu_calls()
    assert (call["options"]["--clock-control"], call["options"]["--cache-control"]) == ("none", "all")
    assert set(found) == NODES
    assert found["test_suite.py::test_other"]["doubling"]["counters"][INSTRUCTIONS] > 0


def test_equal_counters_are_unchanged_and_worse_ones_fail_their_test(counted, monkeypatch, tmp_path):
    """A bare flag does not take the path behind it; nothing is left behind."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = counted.run(*GATE, "test_suite.py")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["counters: 3 UNCHANGED"])
    assert len(counted.ncu_calls()) == 1
    assert [path.name for path in tmp_path.iterdir() if "gpuperf-ncu" in path.name] == []
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1.01")
    result = counted.run(*GATE, "--junitxml=junit.xml")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines([
        "*doubling  WORSE  on simulated-gpu (counters)", "*global load sectors * -> * sectors (+1.00 %)",
        "*the counters got worse: *",
        "If this change is intended: pytest --gpuperf-ncu --update-baselines, and commit what it writes.",
    ])  # fmt: skip
    assert "Traceback" not in result.stdout.str()
    assert 'name="gpuperf.doubling.simulated-gpu.counters" value="WORSE"' in (counted.path / "junit.xml").read_text()


def test_red_kernel_is_explained_with_tables_and_the_report_of_ncu(counted, command):
    """Its baseline is counted in the same process.  The next run does away with what is kept."""
    explain = ["explain", "test_suite.py::test_other", "--details"]
    kept = counted.path / ".gpuperf/counters-1.ncu-rep"
    counted.edit("other.cu", "2.0f", "3.0f + n")
    flags = ("--gpuperf", "--gpuperf-ncu=full", "--gpuperf-report=out/page.html", "-k", "other")
    result = counted.run(*flags)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["counters: ncu-ui .gpuperf/counters-1.ncu-rep shows *"])
    assert {one["range"] for one in json.loads(kept.read_text())} == {"gpuperf:0", "gpuperf:0:baseline"}
    status, out, _ = command(*explain)
    assert status == 0
    assert "Nsight Compute: ncu-ui .gpuperf/counters-1.ncu-rep (range gpuperf:0)" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["counters", "unit", "baseline", "now", "change"] in lines
    (line,) = [words for words in lines if words[:2] == ["Executed", "Instructions"]]
    assert line[-1] == "%"
    page = (counted.path / "out/page.html").read_text()
    for words in ("<caption>Warp State Statistics</caption>", 'href="../.gpuperf/counters-1.ncu-rep"'):
        assert words in page
    counted.run("--gpuperf", "-k", "other")
    assert not kept.exists()
    status, out, _ = command(*explain)
    assert status == 0
    assert "Executed Instructions" in out, "those of the baseline"
    assert "took no counters of it: pytest --gpuperf --gpuperf-ncu=full test_suite.py::test_other" in out


READS = """
import pytest

def of(cuda_kernel, gpu, gpuperf):
    a = gpu.random(512, seed=2)
    return gpuperf(cuda_kernel("other.cu", "other").launch(2, 256, (a, gpu.empty_like(a), 512))).counters

def test_reads(cuda_kernel, gpu, gpuperf):
    assert of(cuda_kernel, gpu, gpuperf)["smsp__inst_executed.sum"] > 0

def test_lacks(cuda_kernel, gpu, gpuperf):
    with pytest.raises(LookupError, match="pytest --gpuperf-ncu"):
        of(cuda_kernel, gpu, gpuperf)["a__b.sum"]
"""


def test_counters_are_read_by_a_test(ncu_suite):
    """A test that lacks them ends as checked only, or as static only without a GPU."""
    ncu_suite.write("test_suite.py", READS)
    for flags in ((), ("--gpuperf",)):
        ncu_suite.run(*flags).assert_outcomes(passed=2)
    assert ncu_suite.ncu_calls() == []
    ncu_suite.run("--gpuperf-ncu", "-k", "reads").assert_outcomes(passed=1)
    ncu_suite.write("conftest.py", "")
    result = ncu_suite.run(*GATE, "-k", "reads")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*  NOT-MEASURED  on * (counters)", "counters: 1 NOT-MEASURED", "*1 static only*"])


def test_profiled_process_runs_the_selected_tests_without_peaks(counted):
    """Other code in it gives no counters of this one."""
    counted.edit("test_suite.py", "assert result.time_ns > 0", "assert gpu.copy_bandwidth > 0 and False")
    counted.edit(
        "test_suite.py", "a = gpu.random(512, seed=2)",
        "import os\n    a = gpu.random(512 if 'STAND_IN_NCU' in os.environ else 256, seed=2)",
    )  # fmt: skip
    result, found = collected(counted, "--gpuperf-ncu", "-k", "1024 or other")
    result.assert_outcomes(failed=1, passed=1)
    assert "test_suite.py::test_work[2048]" not in found
    result.stdout.fnmatch_lines(
        ["    the profiled process ran other code or other arguments*", "counters: 1 NOT-MEASURED, 1 UNCHANGED"]
    )
    assert "the last lines of the profiled tests" not in result.stdout.str()


def test_ini_file_may_ask_for_counters_and_workers_take_none(counted):
    counted.pytester.makeini("[pytest]\ngpuperf_ncu = default\ngpuperf = true\n")
    counted.run().stdout.fnmatch_lines(["counters: 3 UNCHANGED"])
    counted.run("--collect-only")
    assert len(counted.ncu_calls()) == 1
    counted.pytester.makeini("[pytest]\ngpuperf_ncu = defualt\n")
    result = counted.run("--gpuperf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    words = "ini setting gpuperf_ncu: 'defualt' is not valid: it accepts default, memory"
    assert words in result.stderr.str() + result.stdout.str()
    counted.pytester.makeini("[pytest]")
    result = counted.run(*GATE, "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --gpuperf-ncu: *leave -n out, or give -n 0"])


OF_MANY_KINDS = """
def test_kinds(cuda_kernel, gpu, gpuperf):
    a = gpu.random(512, seed=2)
    launch = cuda_kernel("other.cu", "other").launch(grid=2, block=256, args=(a, gpu.empty_like(a), 512))
    gpuperf(launch, name="one")
    gpuperf(lambda: (launch(), launch()), name="two")
    gpuperf(lambda: setattr(gpu._device, "elapsed_ns", gpu._device.elapsed_ns + 3000), name="idle")
    gpuperf(launch, name="warm", cache="warm")

def test_early(cuda_kernel, gpu, gpuperf):
    a = gpu.random(512, seed=2)
    launch = cuda_kernel("other.cu", "other").launch(grid=2, block=256, args=(a, gpu.empty_like(a), 512))
    assert gpuperf(launch, name="first").time_ns > 0
    gpuperf(launch, name="second")
"""


def test_kernels_of_a_callable_add_up_and_what_was_not_counted_is_named(counted):
    """Warm workloads have a process of their own; what is measured after the first time is not counted."""
    counted.write("test_kinds.py", OF_MANY_KINDS)
    result, found = collected(counted, *GATE, "test_kinds.py")
    result.assert_outcomes(passed=2)
    assert [call["options"]["--cache-control"] for call in counted.ncu_calls()] == ["all", "none"]
    works = found["test_kinds.py::test_kinds"]
    assert works["warm"]["cache"] == "warm"
    one, two = (works[name]["counters"] for name in ("one", "two"))
    assert two[INSTRUCTIONS] == 2 * one[INSTRUCTIONS]
    ratio = "sm__warps_active.avg.pct_of_peak_sustained_active"
    assert ratio in one
    assert ratio not in two
    kept = "2 kernels: 4 ratios and percentages are left out, which do not add up"
    assert kept in (counted.path / "all.json").read_text()
    for lines in (
        ["*: idle  NOT-MEASURED  on *(counters)", "    ncu saw no kernel of it: *"],
        ["*: second  NOT-MEASURED  on *(counters)", "    its test did not *"],
        ["counters: 2 NOT-MEASURED, 4 NEW"],
    ):
        result.stdout.fnmatch_lines(lines)


NOTHING_COUNTED = {
    # arguments, and then the reason
    ("--gpuperf-ncu", "test_plain.py"): "*nothing was counted: 1 test ran and has no counters*",
    ("--gpuperf-ncu", "test_idle.py"): "    ncu saw no kernel of any workload; *",
    ("--gpuperf-ncu=smsp__misspelt.sum",): "    no metric is left to collect; *",
}


def test_run_for_counters_that_has_none_fails(ncu_suite):
    ncu_suite.write("test_plain.py", "def test_plain():\n    assert True\n")
    ncu_suite.write("test_idle.py", "def test_idle(gpuperf):\n    gpuperf(lambda: None, name='idle')\n")
    for arguments, reason in NOTHING_COUNTED.items():
        result = ncu_suite.run(*arguments)
        assert result.ret == 10
        result.stdout.fnmatch_lines([reason])
        assert bool(ncu_suite.ncu_calls()) == (arguments[-1] != "test_plain.py")


# --- metrics of one's own ------------------------------------------------------------------------


def test_metrics_by_flag_and_marker_need_no_second_process_and_those_of_a_call_do(counted):
    mark(counted, "test_work", ["gpu__of_marker.sum"])
    ask(counted, ["gpu__of_call.sum"])
    flag = "--gpuperf-ncu=default,gpu__of_flag.sum,smsp__inst_executed_valueless.sum"
    result, found = collected(counted, flag)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["counters: ncu gave no value for smsp__inst_executed_valueless.sum; did you mean 'smsp__inst_executed.sum'?"]
    )
    assert all("gpu__of_flag.sum" in work["counters"] for works in found.values() for work in works.values())
    work = found["test_suite.py::test_work[1024]"]["work"]["counters"]
    other = found["test_suite.py::test_other"]["doubling"]["counters"]
    assert "gpu__of_marker.sum" in work
    assert "gpu__of_call.sum" not in work
    assert {"gpu__of_call.sum", INSTRUCTIONS} <= set(other)
    first, second = counted.ncu_calls()
    assert "gpu__of_marker.sum" in first["options"]["--metrics"]
    assert "gpu__of_call.sum" not in first["options"]["--metrics"]
    assert second["target"][-1].endswith("test_suite.py")


def scale_on_record(suite, factors):
    """Those of the own metric, by test."""
    tree = read_evidence(suite.times)
    for test, factor in factors.items():
        for work in tree["tests"][test].values():
            work["counters"][OWN] *= factor
    write_evidence(suite.times, tree)


def test_own_metric_gates_by_its_tolerance_and_informs_without_one(counted):
    mark(counted, "test_work", {OWN: 0.01})
    ask(counted, {OWN: 0.01})
    counted.run("--update-baselines=new", "--gpuperf-ncu").assert_outcomes(passed=3)
    assert counted.counters()["test_other"][OWN] > 0
    scale_on_record(counted, {"test_work[1024]": 1 / 1.02, "test_other": 1 / 1.02})
    result = counted.run("--gpuperf-ncu")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines([f"*{OWN} * -> * (+2.00 %)", f"*the counters got worse: {OWN}"])
    counted.edit("test_suite.py", f"metrics={dict.fromkeys([OWN], 0.01)}", f"metrics={[OWN]}")
    counted.run("--gpuperf-ncu").assert_outcomes(passed=3)


# --- on record -----------------------------------------------------------------------------------


def test_counters_are_taken_three_times_and_those_that_differ_get_a_band(ncu_suite, monkeypatch):
    """They are added to times that have none; the rounds stay."""
    before = rounds(ncu_suite)
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1,1.02,1.01")
    result = ncu_suite.run("--update-baselines=new", "--gpuperf-ncu")
    result.stdout.fnmatch_lines([
        "gpuperf: counting 3 tests under ncu 2025.3.1.0, collection 3 of 3", "*doubling*simulated-gpu*counters",
        "3 baselines written",
    ])  # fmt: skip
    assert len(ncu_suite.ncu_calls()) == 3
    assert rounds(ncu_suite) == before
    (other,) = read_evidence(ncu_suite.times)["tests"]["test_other"].values()
    least, most = other["counter_ranges"][INSTRUCTIONS]
    assert (least / other["counters"][INSTRUCTIONS], most / least) == pytest.approx((1 / 1.01, 1.02))
    assert "gpu__time_duration.sum" not in other["counter_ranges"]
    for scale, verdict in (("1.069", "UNCHANGED"), ("1.072", "WORSE")):
        monkeypatch.setenv("STAND_IN_NCU_SCALE", scale)
        ncu_suite.run("--gpuperf-ncu").stdout.fnmatch_lines([f"counters: 3 {verdict}"])


def test_first_recording_takes_times_and_counters_of_tests_that_pass(ncu_suite):
    ncu_suite.times.unlink()
    ncu_suite.edit("test_suite.py", "assert result.time_ns > 0", "assert size == 1024")
    result = ncu_suite.run("--update-baselines", "--gpuperf-ncu", "--gpuperf-disturbed")
    result.assert_outcomes(failed=1, passed=2)
    result.stdout.no_fnmatch_line("*no recorded counters*")
    found = ncu_suite.counters()
    assert set(found) == {"test_work[1024]", "test_other"}
    assert all(counters[INSTRUCTIONS] > 0 for counters in found.values())
    assert f'"{INSTRUCTIONS}":[' not in ncu_suite.times.read_text(), "equal takes have no range"


# --- unavailable: the run says why and what to do, and goes on without them ------------------------


def test_reason_and_remedy_are_said_once_and_the_rest_goes_on(ncu_suite, monkeypatch):
    """tests/unit/counters/test_run_ncu.py has the words of ncu."""
    monkeypatch.setenv("STAND_IN_NCU_REFUSED", "1")
    reason = "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)"
    result = ncu_suite.run(*GATE)
    result.assert_outcomes(passed=3)
    assert result.ret == 0
    (line,) = [line for line in result.stdout.lines if line.startswith("    ") and reason in line]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in line
    result.stdout.fnmatch_lines([f"gpuperf: no counters: {reason}*", "counters: 3 NOT-MEASURED"])
    assert "UNCHANGED" in result.stdout.str()
    alone = ncu_suite.run("--gpuperf-ncu")
    assert alone.ret == 10
    alone.stdout.fnmatch_lines(["*ERR_NVGPUCTRPERM*", "ERROR: nothing was counted: 3 tests ran and have no counters*"])
    ncu_suite.times.unlink()
    assert ncu_suite.run("--update-baselines", "--gpuperf-ncu", "--gpuperf-disturbed").ret == 0
    assert set(ncu_suite.counters()) == {"test_work[1024]", "test_work[2048]", "test_other"}


def test_test_that_fails_in_the_profiled_process_alone_loses_only_its_own_counters(ncu_suite):
    ncu_suite.edit(
        "test_suite.py", "def test_other(cuda_kernel, gpu, gpuperf):",
        "def test_other(cuda_kernel, gpu, gpuperf):\n    import os\n    assert 'STAND_IN_NCU' not in os.environ, 'odd'",
    )  # fmt: skip
    result = ncu_suite.run(*GATE)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["counters: 1 NOT-MEASURED, 2 NEW", "*the last lines of the profiled tests:", "*odd*"])
