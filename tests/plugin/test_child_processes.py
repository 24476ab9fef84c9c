"""Processes that a run starts for itself: whatever the user's configuration and whatever happens to them.

A planted loss stays red: one gated run on the simulated GPU finds it and is stopped where it would start its second
process; from there on each case of Hypothesis plays one combination of faults to its end.
"""

from __future__ import annotations

import copy
import gc
import math
import os
import random
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from multiprocessing.connection import Connection

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_gpuperf import stash
from pytest_gpuperf.device.device_errors import LockError
from pytest_gpuperf.judge.decision import Comparison
from pytest_gpuperf.judge.time_verdict import Confirmation
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session import end_of_test, judge_test
from pytest_gpuperf.test_record import CheckedOnly
from pytest_gpuperf.timing.process_reference import Link, OtherSideLost, Started, TestEnded
from pytest_gpuperf.workload import confirm


def run(suite, *arguments):
    """As users do, with pytest's cache and without the temporary folder that ``pytester`` names."""
    command = [sys.executable, "-m", "pytest", "--gpuperf", "-k", "1024 or first", *arguments]
    return subprocess.run(command, cwd=suite.path, capture_output=True, text=True, check=False)


WITHOUT = [f"-pno:{plugin}" for plugin in ("logging", "cacheprovider", "junitxml", "xdist", "tmpdir")]


@pytest.mark.parametrize(("configured", "flags"), [("--ff --nf -x --sw", ()), ("--lf", ()), ("", WITHOUT)])
def test_regression_is_confirmed_whatever_is_configured(slower, configured, flags):
    slower.write("pytest.ini", f"[pytest]\naddopts = {configured}\n")
    before = {path.name for path in slower.path.iterdir()}
    result = run(slower, *flags)
    assert result.returncode != 0, result.stdout
    assert "work  SLOWER  on simulated-gpu" in result.stdout
    assert ", in two processes; " in result.stdout
    after = {path.name for path in slower.path.iterdir()}
    assert after - before <= {".pytest_cache", ".gpuperf", "__pycache__"}, "nothing of a child stays in the project"


FIRST = """
import logging

def test_first(tmp_path):
    (tmp_path / "kept").touch()
    logging.getLogger().warning("of the run")
"""


def test_child_writes_none_of_the_runs_own_files(slower):
    slower.write("pytest.ini", "[pytest]\naddopts = --junit-xml=junit.xml --basetemp=tmp\nlog_file = run.log\n")
    slower.write("test_first.py", FIRST)
    slower.edit("test_suite.py", "gpu, gpuperf, size", "gpu, gpuperf, size, tmp_path")
    assert ", in two processes; " in run(slower).stdout
    suite = ElementTree.parse(slower.path / "junit.xml").getroot().find("testsuite")
    assert [case.get("name") for case in suite.iter("testcase")] == ["test_first", "test_work[1024]"]
    assert list((slower.path / "tmp").glob("test_first*/kept"))
    assert "of the run" in (slower.path / "run.log").read_text()


CASES = 500
ONE = ("-k", "1024")

ENDS = {
    "returned": lambda: None,
    "skipped": lambda: pytest.skip.Exception("not here"),
    "skipped by unittest": lambda: unittest.SkipTest("not here"),
    "failed": lambda: pytest.fail.Exception("not so"),
    "raised": lambda: AssertionError("wrong"),
    "stopped": lambda: CheckedOnly("no time"),
}
STARTS = {"lock": LockError("GPU 0 is taken"), "no lock": LockError("no folder"), "no fork": OtherSideLost("no room")}
LASTS = [
    None, b"", b"{", b'{"type":"ready"}', *map(msgspec.json.encode, (
        TestEnded(why=""), TestEnded(why="its test fails there: it is wrong", failed=True), TestEnded(why="", last=True)
    ))
]  # fmt: skip
"""The last message of the second process; None: it ended without one."""


@st.composite
def answers(draw):
    """What the second process sends: nothing, nonsense, part of an answer, another's, or an honest one."""
    kind = draw(st.sampled_from(["nothing", "empty", "garbage", "cut", "whole", "whole"]))
    if kind in ("nothing", "empty", "garbage"):
        return {"nothing": None, "empty": b"", "garbage": draw(st.binary(max_size=40))}[kind]
    noise, sd = random.Random(draw(st.integers(0, 2**32))), draw(st.sampled_from([0.0005, 0.005, 0.05]))
    r = tuple(math.log(1.6) + noise.gauss(0.0, sd) for _ in range(draw(st.integers(1, 40))))
    comparison = Comparison(r=r, means=r, seed=1, time_ns=1e4)
    return {
        "cut": draw(st.integers(1, 60)) if kind == "cut" else 0,
        "problem": draw(st.sampled_from(["", "", "its cubin cannot be loaded"])),
        "other": draw(st.sampled_from([False, False, True])),
        "comparison": comparison,
    }


def written(answer, suspect):
    """The message's bytes; None: there is none."""
    if not isinstance(answer, dict):
        return answer
    identity = msgspec.structs.replace(suspect.identity, code="ff") if answer["other"] else suspect.identity
    comparison = None if answer["problem"] else answer["comparison"]
    found = Confirmation(place=suspect.place, identity=identity, comparison=comparison, problem=answer["problem"])
    content = msgspec.json.encode(found)
    return content[: -answer["cut"]] if answer["cut"] else content


@pytest.fixture
def found(recorded, monkeypatch):
    """The item, its state and record, and the suspect that waits for its confirmation."""
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=280")
    kept = {}

    def keep(item, run, record):
        (suspect,) = record.suspects
        kept.update(item=item, run=run, record=copy.copy(record), suspect=suspect)
        kept["record"].workloads = dict(record.workloads)
        record.suspects.clear()

    with monkeypatch.context() as patch:
        patch.setattr(confirm, "confirm", keep)
        recorded.run("--gpuperf", *ONE)
    assert kept["suspect"].judgement.time.ratio > 1.6
    return kept


class AnsweringChild:
    """In the place of a process: its messages are in the pipe, and its end is closed behind them."""

    def __init__(self, messages):
        (here, there), (self._request, requests) = os.pipe(), os.pipe()
        self.link = Link(here, requests)
        answers = Connection(there, readable=False)
        for one in (msgspec.json.encode(Started()), *messages):
            answers.send_bytes(one)
        answers.close()

    def explained(self, problem):
        return str(problem)

    def last_output(self):
        return []

    def close(self, *, at_once):
        self.link.close()
        os.close(self._request)


def test_no_combination_of_faults_makes_a_loss_of_60_percent_green(found, monkeypatch):
    # the machine code has changed: red by itself or not
    monkeypatch.setattr(judge_test, "judge_test", lambda *_, **__: "")
    item, run, suspect = found["item"], found["run"], found["suspect"]
    seen = set()

    r = (math.log(1.6),) * 40
    honest = {"cut": 0, "problem": "", "other": False, "comparison": Comparison(r=r, means=r, seed=1, time_ns=1e4)}

    @example(end="returned", start="", last=LASTS[4], answer=honest)
    @example(end="returned", start="", last=None, answer=None)
    @settings(max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        end=st.sampled_from(sorted(ENDS)), start=st.sampled_from(["", "", "", "", *STARTS]),
        last=st.sampled_from(LASTS), answer=answers(),
    )  # fmt: skip
    def play(end, start, last, answer):
        gc.freeze()  # each case looks for garbage, for a GPU's memory: not in what Hypothesis keeps of those before

        def start_child(*_):
            if start:
                raise STARTS[start]
            return AnsweringChild([one for one in (written(answer, suspect), last) if one is not None])

        monkeypatch.setattr(confirm, "ServingChild", start_child)
        record = item.stash[stash.TEST_RECORD] = copy.copy(found["record"])
        record.workloads, record.ended_in = dict(found["record"].workloads), ""
        record.suspects = [suspect]
        problem = ENDS[end]()
        run.end_second_process()
        with pytest.raises((AssertionError, pytest.fail.Exception)):  # neither green nor skipped
            end_of_test.finish(item, problem)
        judgement = record.workloads[suspect.judgement.key.workload].time_judgement
        assert judgement.verdict is Verdict.SLOWER
        seen.add(("not confirmed: " in "".join((*judgement.notes, judgement.reason)), end == "returned"))

    play()
    assert {(False, True), (True, True)} <= seen
