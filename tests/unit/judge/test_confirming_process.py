"""Who is confirmed by which process, and how often a callable is paired anew before its verdict stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from judge_samples import KEY, identity, time_case

from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.judge.block_decision import judge_blocks
from pytest_gpuperf.judge.paired_verdict import judge_pairs
from pytest_gpuperf.judge.policy import Policy
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.timing.blocks import Noise
from pytest_gpuperf.timing.paired_run import Pairing
from pytest_gpuperf.timing.pending_confirmations import Confirmation, PairedPending
from pytest_gpuperf.timing.taken_block import Block
from pytest_gpuperf.workload import second_process

POLICY = Policy(alpha=1e-3)
CALLABLE = identity(code="")
STEADY = [[100.0 + 0.01 * process, 100.0] for process in range(5)]
"""Rounds of a record whose processes hardly differ."""
ONE_PROCESS = [[100.0, 100.0]]
"""Of a record that does not tell what processes are apart."""


class Waiting:
    """A test whose workload waits for confirmation, and the pairs of processes that are to be had."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *pairs: float | None,
        record: Any = STEADY,
        left: int = 3,
        blocks: int = 40,
    ):
        self.pairs, self.asked, self.blocks = list(pairs), 0, blocks
        case = time_case(record, [102.0] * 4, new=CALLABLE)
        taken = (Block(r=math.log(1.02), order="ABBA"),) * 40
        paired = judge_blocks([one.r for one in taken], POLICY, stopped=True)
        first = Pairing(paired, taken, seed=3, size=6, noise=Noise(0.001), seconds=1.0)
        self.judgement = judge_pairs(case, POLICY, first.paired).judgement
        self.book = TestBook(KEY.module, KEY.test)
        self.book.add(WorkloadEvidence(key=KEY, judgements=(self.judgement,)))
        self.state: Any = SimpleNamespace(
            pending={KEY: PairedPending(case, POLICY, first, self.judgement, budget_s=5.0)},
            confirmations_left=left, seconds_of_this_test=lambda item: 1.0,
        )  # fmt: skip
        self.worker: Any = SimpleNamespace(options=SimpleNamespace(confirmations=3))
        monkeypatch.setattr(second_process, "_seen_by_second", self._seen)

    def _seen(self, item: Any, worker: Any, pending: Sequence[Any], limit_s: float) -> tuple[list[Any], str]:
        self.asked += 1
        ratio = self.pairs.pop(0)
        if ratio is None:
            return [None], "the second process failed"
        return [Confirmation(key=KEY, identity=CALLABLE, r=(math.log(ratio),) * self.blocks, seed=4)], "it said nothing"

    def confirmed(self, limit: int = 3) -> Judgement:
        self.worker.options.confirmations = limit
        second_process.confirm(SimpleNamespace(), self.worker, self.state, self.book)  # type: ignore[arg-type]
        (judgement,) = self.book.workloads[KEY.workload].judgements
        return judgement


@pytest.mark.parametrize(
    ("record", "pairs", "verdict", "asked"),
    [
        (STEADY, [1.02], Verdict.SLOWER, 1),
        (ONE_PROCESS, [1.006, 1.03, 1.006, 1.03], Verdict.SLOWER, 4),
        (ONE_PROCESS, [1.006, 1.03, 1.006, 1.0], Verdict.INCONCLUSIVE, 4),
        (STEADY, [1.0], Verdict.NOT_SLOWER, 1),
        (ONE_PROCESS, [1.0, 1.0], Verdict.NOT_SLOWER, 2),
        (ONE_PROCESS, [1.0, 1.02], Verdict.INCONCLUSIVE, 2),
        (ONE_PROCESS, [0.99, 1.0075], Verdict.INCONCLUSIVE, 2),
        (ONE_PROCESS, [1.0, None], Verdict.INCONCLUSIVE, 2),
        (ONE_PROCESS, [1.006, None], Verdict.SUSPECT, 2),
        (STEADY, [None], Verdict.SUSPECT, 1),
    ],
)
def test_a_callable_is_paired_until_processes_are_known_well_enough(
    monkeypatch: pytest.MonkeyPatch, record: Any, pairs: list[float | None], verdict: Verdict, asked: int
) -> None:
    waiting = Waiting(monkeypatch, *pairs, record=record)
    found = waiting.confirmed()
    assert found.verdict is verdict, found.reason
    assert waiting.asked == asked


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0051, Verdict.SUSPECT), (1.0, Verdict.INCONCLUSIVE)])
def test_a_pair_that_is_not_decided_acquits_nothing(
    monkeypatch: pytest.MonkeyPatch, ratio: float, verdict: Verdict
) -> None:
    for record in (STEADY, ONE_PROCESS) if verdict is Verdict.SUSPECT else (ONE_PROCESS,):
        waiting = Waiting(monkeypatch, ratio, record=record, blocks=5)
        assert (waiting.confirmed().verdict, waiting.asked) == (verdict, 1)


def test_what_fresh_pairs_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Waiting(monkeypatch, 1.0).confirmed()
    assert "by 1 pair of fresh processes (x1.000)" in one.reason
    two = Waiting(monkeypatch, 1.0, 1.002, record=ONE_PROCESS).confirmed()
    assert "by 2 pairs of fresh processes (x1.001)" in two.reason
    apart = Waiting(monkeypatch, 1.0, 1.02, record=ONE_PROCESS).confirmed()
    assert apart.reason.endswith("; a third pair of processes found x1.020")


def test_other_verdicts_of_the_workload_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch, 1.0)
    beside = Judgement(key=KEY, target="sm_90", kind="static", verdict=Verdict.WORSE)
    last = Judgement(key=KEY, target="nvidia-h200", kind="memory", verdict=Verdict.SAME)
    waiting.book.add(WorkloadEvidence(key=KEY, judgements=(beside, waiting.judgement, last)))
    second_process.confirm(SimpleNamespace(), waiting.worker, waiting.state, waiting.book)  # type: ignore[arg-type]
    judged = waiting.book.workloads[KEY.workload].judgements
    assert [one.verdict for one in judged] == [Verdict.WORSE, Verdict.NOT_SLOWER, Verdict.SAME]


def test_how_many_pairs_were_slower_is_told_where_one_was_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    several = Waiting(monkeypatch, 1.006, 1.03, 1.006, 1.03, record=ONE_PROCESS).confirmed()
    assert several.notes[-1] == "slower in 5 pairs of processes, by 0.6 to 3.0 %"
    assert not any("pairs of processes" in note for note in Waiting(monkeypatch, 1.02).confirmed().notes)


def test_a_regression_that_is_confirmed_uses_up_a_confirmation_and_no_other_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for ratio, left in ((1.02, 2), (1.0, 3), (None, 3)):
        waiting = Waiting(monkeypatch, ratio)
        waiting.confirmed()
        assert waiting.state.confirmations_left == left
        assert not waiting.state.pending


@pytest.mark.parametrize(
    ("limit", "words"), [(3, "--gpuperf-confirmations=3"), (0, "--gpuperf-confirmations=0 allows")]
)
def test_beyond_their_number_no_process_is_asked_and_the_suspect_is_red(
    monkeypatch: pytest.MonkeyPatch, limit: int, words: str
) -> None:
    waiting = Waiting(monkeypatch, 1.02, left=0)
    found = waiting.confirmed(limit)
    assert (found.verdict, waiting.asked) == (Verdict.SUSPECT, 0)
    assert words in found.reason


def test_the_last_confirmation_that_is_left_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Waiting(monkeypatch, 1.02, left=1).confirmed().verdict is Verdict.SLOWER


def test_a_test_that_is_ended_before_leaves_a_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(monkeypatch)
    second_process.give_up(waiting.state, waiting.book)
    (found,) = waiting.book.workloads[KEY.workload].judgements
    assert (found.verdict, waiting.state.pending) == (Verdict.SUSPECT, {})
