"""One test judged: its machine code against the records, and weighed."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, key, static_record, workload

from pytest_gpuperf.baselines.store import Update
from pytest_gpuperf.explain import Estimates, VersionPair
from pytest_gpuperf.judge.static_weight import StaticEstimate
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.result import WorkloadEvidence
from pytest_gpuperf.model.verdict import Change, Judgement, Verdict
from pytest_gpuperf.session import judge_test
from pytest_gpuperf.session.judge_test import judge_static, unrecorded_cubins
from pytest_gpuperf.test_record import TestRecord

BLOCK = (32, 1, 1)


def record(
    run: Run, old: StaticRecord, name: str = "copy", compiler: str = COMPILER, cubins: tuple[bytes, ...] = ()
) -> None:
    run.store.write(Update(static={("sm_90", compiler, key(name)): old}, cubins=list(cubins)))


def of(*works: WorkloadEvidence) -> TestRecord:
    test = TestRecord(f"{MODULE}::{TEST}")
    for work in works:
        test.add(work)
    return test


def kernel(new: StaticRecord, name: str = "copy", **fields: Any) -> WorkloadEvidence:
    return workload(name, static={"sm_90": new}, toolchain=COMPILER, **fields)


def judged(run: Run, *works: WorkloadEvidence) -> Judgement:
    """The static judgement of the last one, of a test with all of them."""
    return judge_static(of(*works), Estimates(run.store, {}, None))[-1].judgements[0]


# --- against the records ---------------------------------------------------------------------------


def test_verdict_is_that_on_the_record_of_the_same_name(run: Run) -> None:
    found = judged(run, kernel(static_record()))
    assert (found.verdict, found.key, found.target) == (Verdict.NEW, key(), "sm_90")
    record(run, static_record(), compiler="nvrtc 12.9.86")
    assert judged(run, kernel(static_record())).verdict is Verdict.UNCHANGED
    edited = msgspec.structs.replace(static_record("c1"), source_hash="edited")
    found = judged(run, kernel(edited))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.notes == ("the baseline was compiled by nvrtc 12.9.86, this is nvrtc 13.0.88",)
    record(run, static_record(block=BLOCK))
    assert judged(run, kernel(static_record(block=BLOCK))).verdict is Verdict.UNCHANGED
    assert judged(run, kernel(static_record("c1", block=BLOCK))).verdict is Verdict.SAME
    one = workload("copy", judgement(Verdict.SAME), static=dict.fromkeys(("sm_90", "sm_80"), static_record()))
    (several,) = judge_static(of(one), Estimates(run.store, {}, None))
    assert [each.target for each in several.judgements] == ["sm_90", "sm_80", "nvidia-h200"]


def test_machine_code_is_unrecorded_unless_the_record_has_the_same_and_its_cubin(run: Run) -> None:
    digest = hashlib.sha256(b"cubin").hexdigest()
    new = kernel(static_record(cubin="new", block=BLOCK))
    assert unrecorded_cubins(run.store, new) == {"new"}
    record(run, static_record(block=BLOCK))
    assert unrecorded_cubins(run.store, new) == {"new"}
    record(run, static_record(cubin=digest, block=BLOCK), cubins=(b"cubin",))
    assert unrecorded_cubins(run.store, new) == set()
    assert unrecorded_cubins(run.store, kernel(static_record("c1", cubin="other", block=BLOCK))) == {"other"}
    both = workload("copy", static={"sm_80": static_record(cubin=digest), "sm_90": static_record(cubin="new")})
    assert unrecorded_cubins(run.store, both, updates=True) == {"new"}


# --- weighed -----------------------------------------------------------------------------------------

GAIN, LOSS = StaticEstimate(ratio=0.5, latency=0.5), StaticEstimate(ratio=2.0, latency=2.0)
TURNS = Change(what="wavefronts per shared-memory access", before=1, after=32, direction="worse")


def spilling(code: str = "c1", stores: int = 8) -> StaticRecord:
    spills = static_record(code)
    return msgspec.structs.replace(spills, profile=msgspec.structs.replace(spills.profile, spill_store_bytes=stores))


class Comparison:
    """Two versions, as ``WorkloadComparison`` hands them out; what they weigh and prove is set."""

    def __init__(self) -> None:
        self.weight: StaticEstimate | None = None
        self.proofs: dict[tuple[str, str], tuple[Change, ...]] = {}
        self.asked: list[tuple[str, str]] = []

    def of(self, estimates: Any, work: WorkloadEvidence, workloads: Any, facts: None) -> Comparison:
        self.estimates, self.work, self.workloads = estimates, work, workloads
        return self

    def compared(self, arch: str) -> VersionPair:
        return VersionPair(arch, None, None)

    def sides(self, arch: str) -> tuple[str, str]:
        return "old", "new"

    def proven(self, before: str, after: str) -> tuple[Change, ...]:
        self.asked.append((before, after))
        return self.proofs.get((before, after), ())


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    made = Comparison()
    monkeypatch.setattr(judge_test, "WorkloadComparison", made.of)
    monkeypatch.setattr(judge_test, "estimate_change", lambda before, after: made.weight)
    monkeypatch.setattr(judge_test, "proven_causes", made.proven)
    return made


FORTH, BACK = ("old", "new"), ("new", "old")
WEIGHED: dict[str, tuple[Any, Any, Any, Any, Verdict, list[Any]]] = {
    # baseline, candidate, estimate, proofs, and then: verdict, directions that proofs were asked for
    "unchanged": (static_record(), static_record(), LOSS, {FORTH: (TURNS,)}, Verdict.UNCHANGED, []),
    "a proven loss": (static_record(), static_record("c1"), LOSS, {FORTH: (TURNS,)}, Verdict.WORSE, [FORTH]),
    "spills for nothing": (static_record(), spilling(), GAIN, {}, Verdict.WORSE, [FORTH, BACK]),
    "spills for a cure": (static_record(), spilling(), GAIN, {BACK: (TURNS,)}, Verdict.SAME, [FORTH, BACK]),
    "fewer spills": (spilling("c0", 8), spilling("c1", 4), None, {}, Verdict.BETTER, [FORTH]),
    "no spills": (static_record(), static_record("c1"), None, {}, Verdict.SAME, [FORTH]),
}


@pytest.mark.parametrize("case", WEIGHED)
def test_changed_code_is_weighed(run: Run, comparison: Comparison, case: str) -> None:
    old, new, comparison.weight, comparison.proofs, verdict, asked = WEIGHED[case]
    record(run, old)
    assert judged(run, kernel(new)).verdict is verdict
    assert sorted(comparison.asked) == sorted(asked)
