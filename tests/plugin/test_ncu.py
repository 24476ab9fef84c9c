"""``--gpuperf-ncu``: one process collects counters of every workload, and the gate judges them."""

from __future__ import annotations

import pytest
from counters_in_report import counters_in

NODES = {"test_suite.py::test_work[1024]", "test_suite.py::test_work[2048]", "test_suite.py::test_other"}


def test_one_process_collects_for_every_workload(ncu_suite):
    out = ncu_suite.path / "all.json"
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu", f"--gpuperf-report={out}")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["gpuperf: counting 3 tests under ncu 2025.3.1.0", "gpuperf: counters of 3 workloads in *", "counters: 3 NEW"]
    )
    (call,) = ncu_suite.ncu_calls()
    assert call["options"]["--clock-control"] == "none"
    assert call["options"]["--cache-control"] == "all"
    found = counters_in(out)
    assert set(found) == NODES
    other = found["test_suite.py::test_other"]["doubling"]
    assert other["counters"]["smsp__inst_executed.sum"] > 0


def test_equal_counters_are_unchanged_and_worse_ones_fail_their_test(counted, monkeypatch):
    result = counted.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["counters: 3 UNCHANGED"])
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1.01")
    result = counted.run("--gpuperf", "--gpuperf-ncu", "--junitxml=junit.xml")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*doubling  WORSE  on simulated-gpu (counters)",
            "*global load sectors * -> * sectors (+1.00 %)",
            "*the counters got worse: *",
            "If this change is intended: pytest --gpuperf-ncu --update-baselines, and commit what it writes.",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert 'name="gpuperf.doubling.simulated-gpu.counters" value="WORSE"' in (counted.path / "junit.xml").read_text()


def test_dram_bytes_and_stores_may_differ_a_little_and_load_sectors_may_not(counted, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1.0005")
    result = counted.run("--gpuperf-ncu")
    result.assert_outcomes(failed=3)
    reasons = {line.strip() for line in result.stdout.lines if "the counters got worse" in line}
    assert reasons == {"the counters got worse: global load sectors"}


def test_better_counters_pass_with_a_word_and_fail_a_strict_run(counted, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "0.9")
    result = counted.run("--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*doubling  BETTER  on simulated-gpu (counters)"])
    counted.run("--gpuperf-ncu", "--gpuperf-strict").assert_outcomes(failed=3)


def test_counters_alone_time_nothing_and_show_a_table(counted):
    result = counted.run("--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["gpuperf: gating counters only, counters default*", "counters of one run*instructions*DRAM read*verdict",
         "  doubling * UNCHANGED"]
    )  # fmt: skip
    text = result.stdout.str()
    assert "device time" not in text
    assert "registers / spilled" not in text


def test_a_test_reads_its_counters(counted):
    counted.edit(
        "test_suite.py", "assert result.time_ns > 0",
        "assert result.counters['smsp__inst_executed.sum'] > 0\n    assert result.counters['dram__bytes_read.sum'] < 0",
    )  # fmt: skip
    result = counted.run("--gpuperf-ncu", "-k", "work")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*assert * < 0"])


@pytest.mark.parametrize("flags", [(), ("--gpuperf",)], ids=["plain", "timed"])
def test_counters_that_nobody_asked_for_end_the_test_as_checked_only(ncu_suite, flags):
    ncu_suite.edit("test_suite.py", "assert result.time_ns > 0", "assert result.counters['a__b.sum'] < 0")
    result = ncu_suite.run(*flags)
    result.assert_outcomes(passed=3)
    assert ncu_suite.ncu_calls() == []


def test_without_a_gpu_missing_counters_leave_a_test_static_only(suite):
    suite.edit("test_suite.py", "assert result.time_ns > 0", "assert result.counters['a__b.sum'] < 0")
    result = suite.run("--gpuperf", "--gpuperf-ncu")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*3 static only*"])


def test_missing_counters_are_a_lookup_error_with_the_remedy(ncu_suite):
    ncu_suite.edit(
        "test_suite.py", "assert result.time_ns > 0",
        "with pytest.raises(LookupError, match='pytest --gpuperf-ncu'):\n        result.counters['a__b.sum']",
    )  # fmt: skip
    ncu_suite.run().assert_outcomes(passed=3)


def test_only_the_selected_tests_are_profiled(counted):
    out = counted.path / "all.json"
    counted.run("--gpuperf-ncu", "-k", "work and 1024", f"--gpuperf-report={out}").assert_outcomes(passed=1)
    assert set(counters_in(out)) == {"test_suite.py::test_work[1024]"}


def test_a_bare_flag_does_not_take_the_path_behind_it(counted):
    counted.run("--gpuperf-ncu", "test_suite.py").assert_outcomes(passed=3)


def test_the_ini_file_may_ask_for_counters_and_the_profiled_process_does_not_ask_again(counted):
    counted.pytester.makeini("[pytest]\ngpuperf_ncu = default\ngpuperf = true\n")
    counted.run().stdout.fnmatch_lines(["counters: 3 UNCHANGED"])
    assert len(counted.ncu_calls()) == 1


def test_a_workload_without_counters_on_record_fails_under_ci(ncu_suite, monkeypatch):
    monkeypatch.setenv("CI", "1")
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*no counters on record*"])
    ncu_suite.run("--gpuperf", "--gpuperf-ncu", "--gpuperf-open=warn").assert_outcomes(passed=3)


def test_counters_are_recorded_with_the_flags_of_the_run(ncu_suite):
    result = ncu_suite.run("--gpuperf-ncu", "--gpuperf-tolerance=0.01")
    command = "pytest --gpuperf-ncu --update-baselines=new --gpuperf-tolerance=0.01"
    result.stdout.fnmatch_lines([f"next: record 3 new workloads: {command}, and commit the files"])


def test_a_changed_launch_is_not_comparable(counted):
    counted.edit("test_suite.py", "grid=2, block=256", "grid=4, block=128")
    result = counted.run("--gpuperf-ncu", "-k", "other")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*NOT-COMPARABLE*(counters)", "*the launch changed from grid=(2, 1, 1)*"])


def test_changed_code_is_compared(counted):
    counted.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=200")
    result = counted.run("--gpuperf-ncu", "-k", "work")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*instructions executed * -> *"])


def test_workloads_that_stay_warm_have_a_process_of_their_own(counted):
    counted.edit("test_suite.py", 'name="doubling"', 'name="doubling", cache="warm"')
    out = counted.path / "all.json"
    result = counted.run("--gpuperf-ncu", f"--gpuperf-report={out}")
    assert [call["options"]["--cache-control"] for call in counted.ncu_calls()] == ["all", "none"]
    found = counters_in(out)
    assert {work["cache"] for works in found.values() for work in works.values()} == {"cold", "warm"}
    assert set(found) == NODES
    result.stdout.fnmatch_lines(["*taken with a cold L2, these with a warm one*"])


def test_a_callable_of_several_kernels_is_summed_up(counted):
    counted.write(
        "test_two.py",
        "def test_two(cuda_kernel, gpu, gpuperf):\n"
        "    kernel = cuda_kernel('other.cu', 'other')\n"
        "    a = gpu.random(512, seed=2)\n"
        "    b = gpu.empty_like(a)\n"
        "    launch = kernel.launch(grid=2, block=256, args=(a, b, 512))\n"
        "    gpuperf(launch, name='one')\n"
        "    gpuperf(lambda: (launch(), launch()), name='two')\n",
    )
    out = counted.path / "all.json"
    result = counted.run("--gpuperf-ncu", f"--gpuperf-report={out}", "test_two.py")
    result.assert_outcomes(passed=1)
    one, two = (counters_in(out)["test_two.py::test_two"][name] for name in ("one", "two"))
    name = "smsp__inst_executed.sum"
    assert two["counters"][name] == 2 * one["counters"][name]
    ratio = "sm__warps_active.avg.pct_of_peak_sustained_active"
    assert ratio in one["counters"]
    assert ratio not in two["counters"]
    assert "2 kernels: 4 ratios and percentages are left out, which do not add up" in out.read_text()


def test_what_a_test_measures_after_its_first_time_is_told_as_missing(counted):
    counted.write(
        "test_early.py",
        "def test_early(cuda_kernel, gpu, gpuperf):\n"
        "    kernel = cuda_kernel('other.cu', 'other')\n"
        "    a = gpu.random(512, seed=2)\n"
        "    launch = kernel.launch(grid=2, block=256, args=(a, gpu.empty_like(a), 512))\n"
        "    assert gpuperf(launch, name='first').time_ns > 0\n"
        "    gpuperf(launch, name='second')\n",
    )
    result = counted.run("--gpuperf", "--gpuperf-ncu", "test_early.py")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*: second  NOT-MEASURED  on *(counters)", "    its test did not *", "counters: 1 NOT-MEASURED, 1 NEW"]
    )


def test_peaks_are_not_measured_in_the_profiled_process(counted):
    counted.edit("test_suite.py", "assert result.time_ns > 0", "assert gpu.copy_bandwidth > 0 and False")
    result = counted.run("--gpuperf-ncu", "-k", "work")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["counters: 2 UNCHANGED"])
    assert "the last lines of the profiled tests" not in result.stdout.str()


def test_other_code_in_the_profiled_process_is_no_counter_of_this_one(counted):
    counted.edit(
        "test_suite.py", "a = gpu.random(512, seed=2)",
        "import os\n    a = gpu.random(512 if 'STAND_IN_NCU' in os.environ else 256, seed=2)",
    )  # fmt: skip
    result = counted.run("--gpuperf-ncu", "-k", "other")
    result.stdout.fnmatch_lines(["    the profiled process ran other code or other arguments*"])


def test_tests_that_measure_nothing_are_not_profiled(counted):
    counted.write("test_plain.py", "def test_plain():\n    assert True\n")
    result = counted.run("--gpuperf-ncu", "test_plain.py")
    assert counted.ncu_calls() == []
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*nothing was counted: 1 test ran and has no counters*"])


def test_nothing_is_left_behind(counted, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    counted.run("--gpuperf-ncu", subprocess=True).assert_outcomes(passed=3)
    assert [path.name for path in tmp_path.iterdir() if "gpuperf-ncu" in path.name] == []


def test_collecting_only_starts_nothing(counted):
    counted.run("--gpuperf-ncu", "--collect-only")
    assert counted.ncu_calls() == []


def test_workers_take_no_counters(ncu_suite):
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu", "-n", "2", subprocess=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --gpuperf-ncu: *leave -n out, or give -n 0"])
