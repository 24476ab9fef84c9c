"""Metrics of one's own: by flag, marker and ``metrics=``."""

from __future__ import annotations

import os
import shutil

import pytest
from counters_in_report import counters_in
from evidence_tree import read_evidence, write_evidence
from recorded_baselines import baselines_of
from suite_under_test import FILES, READER, SIMULATED

OWN = "gpu__own_metric.sum"


def collected(suite, *names):
    out = suite.path / "all.json"
    result = suite.run(f"--gpuperf-ncu={','.join(['default', *names])}", f"--gpuperf-report={out}")
    return result, counters_in(out)


def ask(suite, metrics):
    suite.edit("test_suite.py", 'name="doubling"', f'name="doubling", metrics={metrics}')


def mark(suite, metrics):
    suite.edit("test_suite.py", "def test_other", f"@pytest.mark.gpuperf(metrics={metrics})\ndef test_other")


def test_the_flag_adds_metrics_for_every_workload(counted):
    result, found = collected(counted, OWN)
    result.assert_outcomes(passed=3)
    assert all(OWN in work["counters"] for works in found.values() for work in works.values())
    assert len(counted.ncu_calls()) == 1


def test_a_markers_metrics_need_no_second_process(counted):
    mark(counted, [OWN])
    result, found = collected(counted)
    result.assert_outcomes(passed=3)
    assert OWN in found["test_suite.py::test_other"]["doubling"]["counters"]
    assert len(counted.ncu_calls()) == 1


def test_metrics_of_a_call_are_taken_by_a_second_process_together_with_the_set(counted):
    ask(counted, [OWN])
    result, found = collected(counted)
    result.assert_outcomes(passed=3)
    counters = found["test_suite.py::test_other"]["doubling"]["counters"]
    assert OWN in counters
    assert "smsp__inst_executed.sum" in counters
    first, second = counted.ncu_calls()
    assert OWN not in first["options"]["--metrics"]
    assert second["target"][-1].endswith("test_suite.py")
    assert OWN not in found["test_suite.py::test_work[1024]"]["work"]["counters"]


def scale_on_record(suite, metric, factor):
    path = suite.path / "baselines/simulated-gpu/test_suite.jsonl"
    tree = read_evidence(path)
    tree["tests"]["test_other"]["doubling"]["counters"][metric] *= factor
    write_evidence(path, tree)


@pytest.fixture(scope="session")
def recording_of_own(counting, stand_in_ncu, shared_folder):
    """Counters, the own metric among them, recorded once."""
    return baselines_of(
        shared_folder / "counting_own", {**FILES, "conftest.py": SIMULATED + READER},
        "--update-baselines=new", f"--gpuperf-ncu=default,{OWN}", before=counting,
        PATH=f"{stand_in_ncu}{os.pathsep}{os.environ['PATH']}",
    )  # fmt: skip


@pytest.fixture
def with_own(counted, recording_of_own):
    """The suite, with the own metric on record."""
    shutil.copytree(recording_of_own, counted.path / "baselines", dirs_exist_ok=True)
    return counted


@pytest.mark.parametrize(
    "add",
    [lambda s: ask(s, {OWN: 0.01}), lambda s: mark(s, {OWN: 0.01})],
    ids=["argument", "marker"],
)
def test_a_metric_with_a_tolerance_is_gated(with_own, add):
    add(with_own)
    scale_on_record(with_own, OWN, 1 / 1.02)
    result = with_own.run("--gpuperf-ncu", "-k", "other")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{OWN} * -> * (+2.00 %)", f"*the counters got worse: {OWN}"])
    scale_on_record(with_own, OWN, 1.02)
    with_own.run("--gpuperf-ncu", "-k", "other").assert_outcomes(passed=1)


def test_a_metric_of_a_call_is_stored(counted):
    ask(counted, [OWN])
    counted.run("--update-baselines=new", "--gpuperf-ncu", "-k", "other").assert_outcomes(passed=1)
    assert counted.counters()["test_other"][OWN] > 0


def test_a_metric_without_a_tolerance_informs_only(with_own):
    ask(with_own, [OWN])
    scale_on_record(with_own, OWN, 1 / 2)
    with_own.run("--gpuperf-ncu", "-k", "other").assert_outcomes(passed=1)


def test_a_test_may_loosen_what_the_catalogue_gates(counted, monkeypatch):
    monkeypatch.setenv("STAND_IN_NCU_SCALE", "1.01")
    names = ["smsp__inst_executed.sum", "smsp__thread_inst_executed.sum", "lts__t_sectors.sum",
             "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
             *(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum" for way in ("ld", "st"))]  # fmt: skip
    mark(counted, dict.fromkeys(names, 0.05))
    counted.run("--gpuperf-ncu").assert_outcomes(failed=2, passed=1)


@pytest.mark.parametrize(
    "add",
    [lambda s: ask(s, ["smsp__inst_excuted_misspelt.sum", OWN]),
     lambda s: mark(s, ["smsp__inst_excuted_misspelt.sum", OWN])],
    ids=["argument", "marker"],
)  # fmt: skip
def test_a_misspelt_metric_is_a_note_and_loses_nothing(counted, add):
    add(counted)
    result, found = collected(counted)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["counters: there is no metric smsp__inst_excuted_misspelt.sum on this GPU*"])
    counters = found["test_suite.py::test_other"]["doubling"]["counters"]
    assert OWN in counters
    assert "smsp__inst_executed.sum" in counters


def test_a_misspelt_name_that_ncu_takes_is_a_note_with_a_hint_and_loses_nothing(counted):
    result, found = collected(counted, "smsp__inst_executed_valueless.sum", OWN)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["counters: ncu gave no value for smsp__inst_executed_valueless.sum; did you mean 'smsp__inst_executed.sum'?"]
    )
    assert len(counted.ncu_calls()) == 1
    assert OWN in found["test_suite.py::test_other"]["doubling"]["counters"]


def test_a_bad_setting_is_a_usage_error(counted):
    counted.pytester.makeini("[pytest]\ngpuperf_ncu = defualt\n")
    result = counted.run("--gpuperf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    words = "ini setting gpuperf_ncu: 'defualt' is not valid: it accepts default, memory"
    assert words in result.stderr.str() + result.stdout.str()
