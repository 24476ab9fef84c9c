"""Counters that cannot be had: the run says why and what to do, and goes on without them."""

from __future__ import annotations

import pytest

from pytest_gpuperf.session import collect_counters


@pytest.mark.parametrize(
    ("mode", "reason", "remedy"),
    [
        ("permission", "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
         "NVreg_RestrictProfilingToAdminUsers=0"),
        ("busy", "another profiler holds the GPU's counters", "dcgmi profile --pause"),
        ("sandbox", "ncu cannot reach the driver from this sandbox", "run outside of the sandbox"),
        ("unsupported", "this ncu does not know this GPU", "newer Nsight Compute"),
        ("driver", "this ncu is too new for the driver", "update the driver"),
        ("no kernels", "ncu saw no kernel of any workload", "under plain pytest"),
    ],
)  # fmt: skip
def test_the_reason_and_the_remedy_are_told_once_and_the_rest_goes_on(ncu_suite, monkeypatch, mode, reason, remedy):
    monkeypatch.setenv("STAND_IN_NCU_MODE", mode)
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    assert result.ret == 0
    lines = [line for line in result.stdout.lines if line.startswith("    ") and reason in line]
    assert len(lines) == 1
    assert remedy in lines[0]
    result.stdout.fnmatch_lines([f"gpuperf: no counters: {reason}*".replace("[", "[[]"), "counters: 3 NOT-MEASURED"])
    assert "UNCHANGED" in result.stdout.str()


def test_a_run_for_counters_alone_that_has_none_fails(ncu_suite, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_MODE", "permission")
    result = ncu_suite.run("--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*ERR_NVGPUCTRPERM*", "ERROR: nothing was counted: 3 tests ran and have no counters*"])


def test_no_ncu_is_told(ncu_suite, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(ncu_suite.path))
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["*and 2 workloads more like it: work  NOT-MEASURED*", "    ncu is neither on PATH*install Nsight Compute*"]
    )


def test_an_old_ncu_is_told(ncu_suite, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_VERSION", "2021.3.1.0")
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.stdout.fnmatch_lines(["*2021.3.1.0 is too old: 2022.4 is needed*"])
    assert ncu_suite.ncu_calls() == []


def test_no_gpu_is_told(suite):
    result = suite.run("--gpuperf", "--gpuperf-ncu")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*work  NOT-MEASURED  on * (counters)", "counters: 3 NOT-MEASURED"])


def test_a_profiled_test_that_crashes_is_told_by_its_last_words(ncu_suite):
    ncu_suite.edit(
        "conftest.py", "return SimulatedGpu(",
        "import os\n    if 'STAND_IN_NCU' in os.environ:\n        os._exit(139)\n    return SimulatedGpu(",
    )  # fmt: skip
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["    *(139)*"])


def test_a_test_that_fails_in_the_profiled_process_alone_loses_only_its_own_counters(ncu_suite):
    ncu_suite.edit(
        "test_suite.py", "def test_other(cuda_kernel, gpu, gpuperf):",
        "def test_other(cuda_kernel, gpu, gpuperf):\n    import os\n    assert 'STAND_IN_NCU' not in os.environ, 'odd'",
    )  # fmt: skip
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["counters: 1 NOT-MEASURED, 2 NEW", "*the last lines of the profiled tests:", "*odd*"])


def test_a_run_that_hangs_is_ended(ncu_suite, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_MODE", "hang")
    monkeypatch.setattr(collect_counters, "START_LIMIT_S", 2.0)
    monkeypatch.setattr(collect_counters, "TEST_LIMIT_S", 0.0)
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*collecting counters was not done after 2 s; select fewer tests*"])


def test_a_report_that_cannot_be_read_is_told(ncu_suite):
    ncu_suite.edit("conftest.py", "return read_stand_in_report", "return None")  # the real reader, then
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["    the report of ncu *"])


def test_what_a_second_process_lacks_does_not_take_the_first_ones_counters(ncu_suite, monkeypatch):
    ncu_suite.edit("test_suite.py", 'name="doubling"', 'name="doubling", cache="warm"')
    monkeypatch.setenv("STAND_IN_NCU_MODE", "busy later")
    result = ncu_suite.run("--gpuperf", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["    another profiler holds *", "counters: 1 NOT-MEASURED, 2 NEW"])


def test_takes_that_an_update_cannot_have_do_not_cost_the_first(ncu_suite, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_MODE", "busy later")
    result = ncu_suite.run("--update-baselines=new", "--gpuperf-ncu")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["counters: taken only 1 of 3 times: another profiler holds *"])
    assert all(counters["smsp__inst_executed.sum"] > 0 for counters in ncu_suite.counters().values())


def test_a_workload_without_a_kernel_has_no_counters(ncu_suite):
    ncu_suite.write("test_idle.py", "def test_idle(gpuperf):\n    gpuperf(lambda: None, name='idle')\n")
    result = ncu_suite.run("--gpuperf-ncu")
    result.stdout.fnmatch_lines(["    ncu saw no kernel of it: *", "counters: 1 NOT-MEASURED, 3 NEW"])


def test_a_run_without_any_kernel_says_so(ncu_suite):
    ncu_suite.write("test_idle.py", "def test_idle(gpuperf):\n    gpuperf(lambda: None, name='idle')\n")
    result = ncu_suite.run("--gpuperf-ncu", "test_idle.py")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["    ncu saw no kernel of any workload; *"])


def test_a_set_of_which_nothing_exists_says_so(ncu_suite):
    result = ncu_suite.run("--gpuperf-ncu=smsp__misspelt.sum")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["    no metric is left to collect; *"])
