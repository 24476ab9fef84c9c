"""``--update-baselines --gpuperf-ncu``: counters go where the times are."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence

INSTRUCTIONS = "smsp__inst_executed.sum"


def rounds(suite):
    tests = read_evidence(suite.path / "baselines/simulated-gpu/test_suite.jsonl")["tests"]
    return {test: next(iter(work.values()))["rounds"] for test, work in tests.items()}


def test_counters_are_added_to_times_that_have_none_and_the_rounds_stay(ncu_suite):
    before = rounds(ncu_suite)
    result = ncu_suite.run("--update-baselines=new", "--gpuperf-ncu")
    assert result.ret == 0
    assert rounds(ncu_suite) == before
    assert all(counters[INSTRUCTIONS] > 0 for counters in ncu_suite.counters().values())
    result.stdout.fnmatch_lines(["*doubling*simulated-gpu*counters", "3 baselines written"])


def test_counters_are_taken_three_times_and_those_that_differ_get_a_band(ncu_suite, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1,1.02,1.01")
    result = ncu_suite.run("--update-baselines=new", "--gpuperf-ncu")
    result.stdout.fnmatch_lines(["gpuperf: counting 3 tests under ncu 2025.3.1.0, take 3 of 3"])
    assert len(ncu_suite.ncu_calls()) == 3
    record = read_evidence(ncu_suite.path / "baselines/simulated-gpu/test_suite.jsonl")
    (other,) = record["tests"]["test_other"].values()
    least, most = other["counter_ranges"][INSTRUCTIONS]
    assert (least / other["counters"][INSTRUCTIONS], most / least) == pytest.approx((1 / 1.01, 1.02))
    assert "gpu__time_duration.sum" not in other["counter_ranges"]
    for scale, verdict in (("1.069", "UNCHANGED"), ("1.072", "WORSE"), ("0.951", "UNCHANGED"), ("0.949", "BETTER")):
        monkeypatch.setenv("STAND_IN_NCU_SCALE", scale)
        ncu_suite.run("--gpuperf-ncu").stdout.fnmatch_lines([f"counters: 3 {verdict}"])


def test_a_gated_run_takes_counters_once(counted):
    before = len(counted.ncu_calls())
    counted.run("--gpuperf-ncu")
    assert len(counted.ncu_calls()) == before + 1


def test_equal_takes_leave_no_range_of_what_is_exact(counted):
    assert '"smsp__inst_executed.sum":[' not in (counted.path / "baselines/simulated-gpu/test_suite.jsonl").read_text()


def test_a_second_update_writes_nothing(counted):
    before = counted.baseline_files()
    counted.run("--update-baselines=changed", "--gpuperf-ncu")
    assert counted.baseline_files() == before


def test_a_first_recording_takes_times_and_counters_together(ncu_suite):
    (ncu_suite.path / "baselines/simulated-gpu/test_suite.jsonl").unlink()
    result = ncu_suite.run("--update-baselines", "--gpuperf-ncu")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*no counters on record*")
    assert all(counters[INSTRUCTIONS] > 0 for counters in ncu_suite.counters().values())
    ncu_suite.run("--gpuperf", "--gpuperf-ncu").stdout.fnmatch_lines(["counters: 3 UNCHANGED"])


def test_changed_code_takes_new_times_and_new_counters(counted):
    before = counted.counters()
    counted.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=200")
    result = counted.run("--update-baselines", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    after = counted.counters()
    assert after["test_work[1024]"][INSTRUCTIONS] > before["test_work[1024]"][INSTRUCTIONS]
    assert after["test_other"] == before["test_other"]
    counted.run("--gpuperf-ncu").stdout.fnmatch_lines(["counters: 3 UNCHANGED"])


def test_changed_code_without_counters_drops_the_old_ones(counted):
    counted.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=200")
    counted.run("--update-baselines")
    after = counted.counters()
    assert after["test_work[1024]"] == {}
    assert after["test_other"] != {}


def test_recording_the_same_code_without_counters_keeps_them(counted):
    before = counted.counters()
    counted.run("--update-baselines=all", "-k", "other")
    assert counted.counters() == before


def test_changed_counters_of_the_same_code_are_taken_and_the_rounds_stay(counted, monkeypatch):
    before, old = rounds(counted), counted.counters()
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1.5")
    counted.run("--update-baselines=new", "--gpuperf-ncu")
    assert counted.counters() == old
    result = counted.run("--update-baselines=changed", "--gpuperf-ncu")
    result.assert_outcomes(passed=3)
    assert rounds(counted) == before
    assert counted.counters()["test_other"][INSTRUCTIONS] == 1.5 * old["test_other"][INSTRUCTIONS]


def test_a_larger_set_adds_what_is_not_on_record(counted):
    old = counted.counters()["test_other"]
    result = counted.run("--gpuperf-ncu=memory")
    result.stdout.fnmatch_lines(["*collected and not on record yet (--update-baselines=new --gpuperf-ncu adds them)*"])
    counted.run("--update-baselines=new", "--gpuperf-ncu=memory")
    new = counted.counters()["test_other"]
    assert set(new) > set(old)
    assert {name: new[name] for name in old} == old


def test_counters_without_a_time_on_record_are_refused_with_the_reason(ncu_suite):
    ncu_suite.edit(
        "conftest.py", "return SimulatedGpu(",
        "from pytest_gpuperf.model.device_facts import DeviceState\n"
        "    return SimulatedGpu(state=DeviceState(throttle_reasons=('power cap',)), ",
    )  # fmt: skip
    (ncu_suite.path / "baselines/simulated-gpu/test_suite.jsonl").unlink()
    result = ncu_suite.run("--update-baselines", "--gpuperf-ncu", "-k", "other")
    result.stdout.fnmatch_lines(["*refused*power cap*"])
    assert not (ncu_suite.path / "baselines/simulated-gpu/test_suite.jsonl").exists()


def test_a_failed_test_gives_no_counters(ncu_suite):
    ncu_suite.edit("test_suite.py", "assert result.time_ns > 0", "assert result.time_ns < 0")
    ncu_suite.run("--update-baselines=new", "--gpuperf-ncu").assert_outcomes(failed=2, passed=1)
    found = ncu_suite.counters()
    assert found["test_other"] != {}
    assert found["test_work[1024]"] == {}


def test_an_update_whose_counters_are_unavailable_records_the_rest(ncu_suite, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_MODE", "permission")
    (ncu_suite.path / "baselines/simulated-gpu/test_suite.jsonl").unlink()
    result = ncu_suite.run("--update-baselines", "--gpuperf-ncu")
    assert result.ret == 0
    assert set(ncu_suite.counters()) == {"test_work[1024]", "test_work[2048]", "test_other"}
    result.stdout.fnmatch_lines(["*ERR_NVGPUCTRPERM*"])
