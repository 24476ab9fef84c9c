"""Whatever happens to the second process and to the end of the test: a planted loss of 60 % is never green.

One gated run on the simulated GPU finds the loss and is stopped where it would start its second process; from there on
each case of Hypothesis plays one combination of faults to its end.
"""

from __future__ import annotations

import copy
import gc
import math
import random
import unittest

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_gpuperf.timing.pending_confirmations import Confirmation

from pytest_gpuperf.context import stash
from pytest_gpuperf.context.early_stop import CheckedOnly
from pytest_gpuperf.device.device_errors import LockTimeout, LockUnavailable
from pytest_gpuperf.session import end_of_test, judge_book
from pytest_gpuperf.workload import second_process

CASES = 2000
ONE = ("-k", "1024")

ENDS = {
    "returned": lambda: None,
    "skipped": lambda: pytest.skip.Exception("not here"),
    "skipped by unittest": lambda: unittest.SkipTest("not here"),
    "failed": lambda: pytest.fail.Exception("not so"),
    "raised": lambda: AssertionError("wrong"),
    "stopped": lambda: CheckedOnly("no time"),
}
STARTS = {"lock": LockTimeout("GPU 0 is taken"), "no lock": LockUnavailable("no folder"), "no fork": OSError("no room")}
STATUSES = [None, 0, 1, 2, 3, 4, 5, 10, 139, -6, -9, -11]
"""Of the second process; None: it was ended."""


@st.composite
def answers(draw):
    """What the second process leaves, as bytes: nothing, part of an answer, another's, or an honest one."""
    kind = draw(st.sampled_from(["nothing", "empty", "garbage", "cut", "whole", "whole"]))
    if kind == "nothing":
        return None
    if kind == "empty":
        return b""
    if kind == "garbage":
        return draw(st.binary(max_size=40))
    noise = random.Random(draw(st.integers(0, 2**32)))
    sd = draw(st.sampled_from([0.0005, 0.005, 0.05]))
    count = draw(st.integers(0, 40))
    r = tuple(math.log(1.6) + noise.gauss(0.0, sd) for _ in range(count))
    changes = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "not_paired": st.just("its cubin cannot be loaded"),
                "disturbed": st.just(("another process computes on this GPU",)),
                "discarded": st.integers(0, 200),
                "other identity": st.just(True),
            },
        )
    )
    return {"r": r, "cut": draw(st.integers(1, 60)) if kind == "cut" else 0, **changes}


def written(answer, key, identity):
    """The file's bytes."""
    if not isinstance(answer, dict):
        return answer
    fields = dict(answer)
    cut = fields.pop("cut")
    if fields.pop("other identity", False):
        identity = msgspec.structs.replace(identity, code="ff")
    content = msgspec.json.encode(Confirmation(key=key, identity=identity, seed=1, **fields))
    return content[:-cut] if cut else content


@pytest.fixture
def found(recorded, monkeypatch):
    """The item, its worker, state and book, and what waits for its confirmation."""
    recorded.edit("test_suite.py", "-DSTEPS=100", "-DSTEPS=280")
    kept = {}

    def confirm(item, worker, state, book):
        kept.update(item=item, worker=worker, state=state, book=copy.copy(book), pending=dict(state.pending))
        kept["book"].workloads = dict(book.workloads)
        second_process.give_up(state, book)

    with monkeypatch.context() as patch:
        patch.setattr(second_process, "confirm", confirm)
        recorded.run("--gpuperf", *ONE)
    (pending,) = kept["pending"].values()
    assert pending.pairing.paired.ratio > 1.6
    return kept


def test_no_combination_of_faults_makes_a_loss_of_60_percent_green(found, monkeypatch):
    # the machine code has changed: red by itself or not
    monkeypatch.setattr(judge_book, "judge_book", lambda *_, **__: "")
    item, state = found["item"], found["state"]
    (key,) = found["pending"]
    identity = found["pending"][key].case.identity
    seen = set()

    @settings(max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        end=st.sampled_from(sorted(ENDS)), start=st.sampled_from(["", "", "", "", *STARTS]),
        status=st.sampled_from(STATUSES), answer=answers(), left=st.sampled_from([0, 1, 20]),
    )  # fmt: skip
    def play(end, start, status, answer, left):
        gc.freeze()  # each case looks for garbage, for a GPU's memory: not in what Hypothesis keeps of those before

        def run_task(config, task, folder, log, limit_s, extra=(), environ=None):
            if start:
                raise STARTS[start]
            content = written(answer, key, identity)
            if content is not None:
                (task.folder / "0.json").write_bytes(content)
            return status

        monkeypatch.setattr(second_process, "run_task", run_task)
        book = item.stash[stash.TEST_BOOK] = copy.copy(found["book"])
        book.workloads, book.ended_in = dict(found["book"].workloads), ""
        state.pending, state.confirmations_left = dict(found["pending"]), left
        problem = ENDS[end]()
        with pytest.raises((AssertionError, pytest.fail.Exception)):  # neither green nor skipped
            end_of_test.finish(item, problem)
        verdict = book.workloads[key.workload].time_judgement.verdict.value
        assert verdict in ("SLOWER", "SUSPECT")
        seen.add((verdict, end == "returned"))

    play()
    assert {("SLOWER", True), ("SUSPECT", True)} <= seen
