"""Changed machine code weighed by estimates of the whole, with what each side proves, and records that prove none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, Run, judgement, key, static_record, workload

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.explain.comparison import Estimates, VersionPair
from pytest_gpuperf.judge.static_weight import StaticEstimate
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict
from pytest_gpuperf.session import static_gate
from pytest_gpuperf.session.static_gate import in_order, judge_static

GAIN, LOSS = StaticEstimate(ratio=0.5, latency=0.5), StaticEstimate(ratio=2.0, latency=2.0)
TURNS = Change(what="passes per shared-memory access", before=1, after=32, direction="worse")


def spilling(code: str = "c1", stores: int = 8) -> StaticRecord:
    record = static_record(code)
    return msgspec.structs.replace(record, profile=msgspec.structs.replace(record.profile, spill_store_bytes=stores))


class Comparison:
    """Two versions, as ``WorkloadComparison`` hands them out; what they weigh and prove is set."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.weight: StaticEstimate | None = None
        self.proofs: dict[tuple[str, str], tuple[Change, ...]] = {}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, *given: Any) -> Comparison:
        self.made.append(given)
        return self

    def compared(self, arch: str) -> VersionPair:
        return VersionPair(arch, None, None)

    def sides(self, arch: str) -> tuple[str, str]:
        return "old", "new"

    def weigh(self, before: str, after: str) -> StaticEstimate | None:
        return self.weight

    def proven(self, before: str, after: str) -> tuple[Change, ...]:
        self.asked.append((before, after))
        return self.proofs.get((before, after), ())


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    made = Comparison()
    monkeypatch.setattr(static_gate, "WorkloadComparison", made)
    monkeypatch.setattr(static_gate, "weigh", made.weigh)
    monkeypatch.setattr(static_gate, "proven_causes", made.proven)
    return made


def judged(run: Run, new: StaticRecord, old: StaticRecord | None = None) -> Judgement:
    run.store.write(Update(static={("sm_90", COMPILER, key()): old or static_record()}))
    one = workload("copy", static={"sm_90": new}, toolchain=COMPILER)
    estimates = Estimates(run.store, {}, None)
    return judge_static(run.worker, one, [one], estimates).judgements[0]


def test_a_proven_cause_gates_where_the_estimate_loses(run: Run, comparison: Comparison) -> None:
    comparison.weight = LOSS
    comparison.proofs = {("old", "new"): (TURNS,)}
    found = judged(run, static_record("c1"))
    assert (found.verdict, found.changes[0]) == (Verdict.WORSE, TURNS)
    assert comparison.asked == [("old", "new")]
    store, _, one, compiler, all_of, _ = comparison.made[0]
    assert (store, one.key, compiler, [each.key for each in all_of]) == (run.store, key(), COMPILER, [key()])


def test_unchanged_code_is_weighed_by_nothing(run: Run, comparison: Comparison) -> None:
    assert judged(run, static_record()).verdict is Verdict.UNCHANGED
    assert comparison.made == []


def test_a_cure_on_the_way_back_may_be_worth_its_spills(run: Run, comparison: Comparison) -> None:
    comparison.weight = GAIN
    assert judged(run, spilling()).verdict is Verdict.WORSE  # it proves nothing
    comparison.asked.clear()
    comparison.proofs = {("new", "old"): (TURNS,)}
    found = judged(run, spilling())
    assert (found.verdict, "got worse, which an estimate of the whole kernel outranks" in found.reason) == (
        Verdict.SAME, True
    )  # fmt: skip
    assert comparison.asked == [("old", "new"), ("new", "old")]


@pytest.mark.parametrize(
    ("old", "new"), [(spilling("c0", 8), spilling("c1", 4)), (static_record(), static_record("c1"))]
)
def test_a_cure_is_looked_for_where_local_memory_got_worse_alone(
    run: Run, comparison: Comparison, old: StaticRecord, new: StaticRecord
) -> None:
    judged(run, new, old)
    assert comparison.asked == [("old", "new")]


def test_verdicts_come_in_order_where_there_is_a_gpu_alone(
    run: Run, without_gpu: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = workload("copy", judgement(Verdict.WORSE, "static"), judgement(Verdict.SAME))
    monkeypatch.setattr(static_gate, "weighed_by_time", lambda judgements, arch: judgements[::-1])
    assert in_order(run.worker, one).judgements == one.judgements[::-1]
    assert in_order(without_gpu.worker, one) == one
