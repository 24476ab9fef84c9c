"""Static judgement against baselines on disk, and what a test that stopped early did not come to."""

from __future__ import annotations

import hashlib

from run_samples import COMPILER, Run, key, static_record, workload

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.explain.comparison import Estimates
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session.static_gate import judge_static, unrecorded_cubins


def record(
    run: Run, old: StaticRecord, name: str = "copy", compiler: str = COMPILER, cubins: tuple[bytes, ...] = ()
) -> None:
    run.store.write(Update(static={("sm_90", compiler, key(name)): old}, cubins=list(cubins)))


def judged(run: Run, new: StaticRecord, name: str = "copy", *, launched: bool = True) -> Judgement:
    one = workload(name, static={"sm_90": new}, toolchain=COMPILER, launched=launched)
    return judge_static(run.worker, one, [one], Estimates(run.store, {}, None)).judgements[0]


def test_the_verdict_is_that_on_the_record_of_the_same_name(run: Run) -> None:
    record(run, static_record(block=(32, 1, 1)))
    assert judged(run, static_record(block=(32, 1, 1))).verdict is Verdict.UNCHANGED
    changed = judged(run, static_record("c1", block=(32, 1, 1)))
    assert (changed.verdict, changed.key, changed.target) == (Verdict.SAME, key(), "sm_90")


def test_static_verdicts_stand_before_the_others(run: Run) -> None:
    later = Judgement(key=key(), target="nvidia-h200", kind="time", verdict=Verdict.SAME)
    one = workload("copy", later, static={"sm_90": static_record(), "sm_80": static_record()}, toolchain=COMPILER)
    found = judge_static(run.worker, one, [one], Estimates(run.store, {}, None))
    assert [(each.target, each.kind) for each in found.judgements] == [
        ("sm_90", "static"), ("sm_80", "static"), ("nvidia-h200", "time")
    ]  # fmt: skip
    assert found.static == one.static


def test_no_record_is_new_and_one_of_another_compiler_is_named(run: Run) -> None:
    found = judged(run, static_record())
    assert (found.verdict, found.key, found.target) == (Verdict.NEW, key(), "sm_90")
    record(run, static_record(), compiler="nvrtc 12.9.86")
    found = judged(run, static_record())
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "compiled by nvrtc 12.9.86, this is nvrtc 13.0.88" in found.reason


def test_a_kernel_that_was_not_launched_is_known_by_its_own_name(run: Run) -> None:
    record(run, static_record(block=(32, 1, 1)), "copy of 16 MB")
    assert judged(run, static_record(), launched=False).verdict is Verdict.UNCHANGED
    assert judged(run, static_record(block=(32, 1, 1))).verdict is Verdict.NEW


def test_a_kernel_that_was_not_launched_is_known_by_its_code_before_its_name(run: Run) -> None:
    record(run, static_record("c0", block=(32, 1, 1)))
    record(run, static_record("c1", block=(32, 1, 1)), "second")
    assert judged(run, static_record("c1"), launched=False).verdict is Verdict.UNCHANGED
    assert judged(run, static_record("c2"), launched=False).verdict is Verdict.SAME
    assert judged(run, static_record("c1", block=(32, 1, 1))).verdict is Verdict.SAME


def test_a_record_that_another_workload_stands_for_is_not_compared_with(run: Run) -> None:
    first = workload("copy", static={"sm_90": static_record("c0")}, toolchain=COMPILER, launched=False)
    labelled = workload("copy [-DA]", static={"sm_90": static_record("c2")}, toolchain=COMPILER, launched=False)

    def verdict() -> Verdict:
        return (
            judge_static(run.worker, labelled, [first, labelled], Estimates(run.store, {}, None)).judgements[0].verdict
        )

    record(run, static_record("c0", block=(32, 1, 1)))
    assert verdict() is Verdict.NEW
    record(run, static_record("c1", block=(32, 1, 1)), "copy [-DB]")
    assert verdict() is Verdict.SAME


def test_machine_code_is_unrecorded_unless_the_record_has_the_same_and_its_cubin(run: Run) -> None:
    digest = hashlib.sha256(b"cubin").hexdigest()
    new = workload(static={"sm_90": static_record(cubin="new", block=(32, 1, 1))}, toolchain=COMPILER)
    assert unrecorded_cubins(run.store, new) == {"new"}
    record(run, static_record(block=(32, 1, 1)))
    assert unrecorded_cubins(run.store, new) == {"new"}
    record(run, static_record(cubin=digest, block=(32, 1, 1)), cubins=(b"cubin",))
    assert unrecorded_cubins(run.store, new) == set()
    other = workload(static={"sm_90": static_record("c1", cubin="other", block=(32, 1, 1))}, toolchain=COMPILER)
    assert unrecorded_cubins(run.store, other) == {"other"}
