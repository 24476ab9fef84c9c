"""Canary kernels: on record beside each recording, and compared with where a workload of the same GPU is timed."""

from __future__ import annotations

import pytest
from evidence_tree import read_evidence, write_evidence

from pytest_gpuperf.timing import canaries
from pytest_gpuperf.workload import gate_time

ONE = ("-k", "1024")


def sessions_of(suite):
    path = suite.path / "baselines" / "simulated-gpu" / "test_suite.json"
    return path, read_evidence(path)


def edit_canaries(suite, factor):
    """Let the canaries have taken ``factor`` times as long when the baseline was recorded."""
    path, content = sessions_of(suite)
    for session in content["sessions"]:
        session["canaries"] = {name: time * factor for name, time in session["canaries"].items()}
    write_evidence(path, content)


def test_a_recording_has_the_canaries_of_its_processes(recorded):
    _, content = sessions_of(recorded)
    (session,) = content["sessions"]
    assert set(session["canaries"]) == {"copy", "fma"}
    assert all(time > 1000 for time in session["canaries"].values())


def test_a_slower_machine_shows_in_its_canaries(recorded):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(slowdown=1.03, ")
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    result.stdout.re_match_lines(
        [
            r".*work  ENV-SHIFT  on simulated-gpu \(time\) .*identity",
            r".*clocks, temperature or what else runs on this GPU "
            r"\(canary kernels moved, too: copy \+(2|3)\.\d %, fma \+(2|3)\.\d %\)",
            r"environment shift: the canary kernel copy, which no change of yours touches, moved by \+(2|3)\.\d %",
        ]
    )


def test_workers_tell_of_canaries_too(recorded):
    recorded.edit("conftest.py", "SimulatedGpu(", "SimulatedGpu(slowdown=1.03, ")
    result = recorded.run("--gpuperf", "-n", "2", subprocess=True)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["environment shift: the canary kernel fma, which*moved by +*"])


def test_a_machine_as_it_was_says_nothing_of_canaries(recorded):
    result = recorded.run("--gpuperf")
    result.assert_outcomes(passed=3)
    assert "canary" not in result.stdout.str()


def test_without_canaries_on_record_none_is_timed(recorded, monkeypatch):
    path, content = sessions_of(recorded)
    for session in content["sessions"]:
        del session["canaries"]
    write_evidence(path, content)
    monkeypatch.setattr(canaries, "canary_times", None)
    recorded.run("--gpuperf").assert_outcomes(passed=3)


def test_nor_for_a_run_that_times_nothing(recorded, monkeypatch):
    monkeypatch.setattr(canaries, "canary_times", None)
    recorded.run("--gpuperf", "--gpuperf-changed").assert_outcomes(passed=3)


@pytest.mark.parametrize("time", [0, -5.0, 1e300])
def test_a_canary_on_record_that_took_no_time_is_refused(recorded, time):
    path, content = sessions_of(recorded)
    content["sessions"][0]["canaries"]["fma"] = time
    write_evidence(path, content)
    result = recorded.run("--gpuperf", *ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_suite.json*canary 'fma' took * ns, out of range*"])
