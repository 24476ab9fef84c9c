"""Runs add up: a loss that no run calls red is proven by many, told, and red where that is asked for."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from suite_under_test import Suite

GATED = ("--gpuperf", "-k", "work and 1024")


def lines(suite: Suite) -> list[dict[str, object]]:
    path = suite.path / ".gpuperf/ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rewrite(path: Path, log_ratio: float, times: int) -> None:
    """As if ``times`` earlier runs of the same candidate had found that."""
    line = json.loads(path.read_text().splitlines()[-1])
    for number in range(times):
        line["note"] = {**line["note"], "log_ratio": log_ratio, "seed": number}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def test_what_is_paired_is_noted_and_what_is_not_is_not(recorded: Suite) -> None:
    assert recorded.run(*GATED).ret == 0
    assert lines(recorded) == []  # unchanged, so not paired
    recorded.change_code()
    recorded.run(*GATED)
    (line,) = lines(recorded)
    assert line["workload"] == "test_suite.py::test_work[1024] [work]"
    assert line["device"] == "simulated-gpu"
    recorded.run(*GATED)
    assert len(lines(recorded)) == 2


def test_a_second_process_has_a_vote_of_its_own(recorded: Suite) -> None:
    recorded.edit("test_suite.py", "STEPS=100", "STEPS=105")
    assert recorded.run(*GATED).ret == 1
    assert len(lines(recorded)) == 2


@pytest.mark.parametrize(("flag", "status"), [("report", 0), ("gate", 14), ("off", 0)])
def test_many_runs_prove_what_one_does_not(recorded: Suite, flag: str, status: int) -> None:
    recorded.change_code()
    recorded.run(*GATED)
    rewrite(recorded.path / ".gpuperf/ledger.jsonl", math.log1p(0.002), 20)
    result = recorded.run(*GATED, f"--gpuperf-ledger={flag}")
    assert result.ret == status
    said = "*test_work?1024? ?work? on simulated-gpu: x1.0020, slower than 0.05% by 22 votes together*"
    if flag == "off":
        result.stdout.no_fnmatch_line("*votes together*")
        assert len(lines(recorded)) == 21
    else:
        result.stdout.fnmatch_lines([said])


def test_what_proves_is_counted_in_votes_of_which_a_confirmed_run_has_two(recorded: Suite) -> None:
    recorded.edit("test_suite.py", "STEPS=100", "STEPS=105")
    recorded.run(*GATED)
    rewrite(recorded.path / ".gpuperf/ledger.jsonl", math.log1p(0.002), 20)
    result = recorded.run(*GATED)
    assert len(lines(recorded)) == 24
    result.stdout.fnmatch_lines(["*slower than 0.05% by 24 votes together (E=*"])


def test_another_file_serves_a_team(recorded: Suite) -> None:
    recorded.change_code()
    recorded.run(*GATED, "--gpuperf-ledger-file=shared/runs.jsonl")
    assert len((recorded.path / "shared/runs.jsonl").read_text().splitlines()) == 1
    assert lines(recorded) == []


def test_a_ledger_that_cannot_be_kept_is_told_and_fails_a_gate(recorded: Suite) -> None:
    recorded.change_code()
    recorded.write("file", "")
    flags = (*GATED, "--gpuperf-ledger-file=file/runs.jsonl")
    result = recorded.run(*flags)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*runs.jsonl cannot be written*--gpuperf-ledger=off*"])
    assert recorded.run(*flags, "--gpuperf-ledger=gate").ret == 14


def test_workers_leave_the_writing_to_the_controller(recorded: Suite) -> None:
    recorded.change_code()
    recorded.run("--gpuperf", "-k", "work", "-n", "2", subprocess=True)
    assert len(lines(recorded)) == 2
