"""Static judgement against baselines on disk, and what a test that stopped early did not come to."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pytest
from run_samples import COMPILER, MODULE, TEST, Run, key, static_record, workload

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.compile.compile_errors import ToolchainMissing
from pytest_gpuperf.explain.comparison import Estimates
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.task import Revision, UntimedWork
from pytest_gpuperf.model.time_record import Identity
from pytest_gpuperf.model.verdict import Judgement, Verdict
from pytest_gpuperf.session import not_reached as module
from pytest_gpuperf.session.not_reached import CAUGHT, PASSED_WITHOUT, WITHOUT_CODE, not_reached
from pytest_gpuperf.session.static_gate import judge_static, unrecorded_cubins
from pytest_gpuperf.test_record import TestRecord


@pytest.fixture(autouse=True)
def this_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "toolchain", lambda: COMPILER)


def record(
    run: Run, old: StaticRecord, name: str = "copy", compiler: str = COMPILER, cubins: tuple[bytes, ...] = ()
) -> None:
    run.store.write(Update(static={("sm_90", compiler, key(name)): old}, cubins=list(cubins)))


def time_judgement(name: str) -> Judgement:
    return Judgement(key=key(name), target="nvidia-h200", kind="time", verdict=Verdict.SAME)


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
    book = stopped_book()
    for one in (first, labelled):
        book.add(one)
    assert not_reached(run.worker, book) == []


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


def stopped_book(status: str = "static only") -> TestRecord:
    book = TestRecord(MODULE, TEST)
    book.stop(status, "no driver")  # type: ignore[arg-type]
    return book


def test_every_workload_on_record_that_was_not_reached_is_named(without_gpu: Run) -> None:
    record(without_gpu, static_record(), "first")
    record(without_gpu, static_record("c1", kernel="scale"), "second")
    book = stopped_book()
    book.add(workload("first", static={"sm_90": static_record()}, toolchain=COMPILER))
    (found,) = not_reached(without_gpu.worker, book)
    assert (found.key, found.target, found.kind, found.verdict) == (
        key("second"),
        "sm_90",
        "static",
        Verdict.NOT_MEASURED,
    )
    assert found.reason == (
        "has a baseline and was not reached: the test ended at its first need for a GPU. "
        "Put what needs times or data behind the last gpuperf(...) and cuda_kernel(...)"
    )


def test_a_test_that_only_checked_says_what_it_needed(run: Run) -> None:
    record(run, static_record())
    (found,) = not_reached(run.worker, stopped_book("checked only"))
    assert "its first need for a time or a counter that this run does not take. Put" in found.reason


def test_a_kernel_that_stands_for_itself_reaches_the_record_that_it_was_compared_with(without_gpu: Run) -> None:
    record(without_gpu, static_record(), "copy of 16 MB")
    record(without_gpu, static_record("c1"), "copy of 64 MB")
    book = stopped_book()
    book.add(workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER, launched=False))
    assert [one.key.workload for one in not_reached(without_gpu.worker, book)] == ["copy of 64 MB"]
    book.add(workload("copy", static={"sm_90": static_record()}, toolchain="Triton 3.6.0", launched=False))
    assert len(not_reached(without_gpu.worker, book)) == 2
    book.add(workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER))
    assert len(not_reached(without_gpu.worker, book)) == 2


def test_records_of_every_compiler_of_the_test_are_asked_for(without_gpu: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    record(without_gpu, static_record(), "by nvrtc")
    record(without_gpu, static_record(), "by triton", "Triton 3.6.0")
    record(without_gpu, static_record(), "by another", "nvrtc 12.9.86")
    book = stopped_book()
    book.add(workload("done", toolchain="Triton 3.6.0"))
    book.add(workload("callable"))
    assert {one.key.workload for one in not_reached(without_gpu.worker, book)} == {"by nvrtc", "by triton"}

    def missing() -> str:
        raise ToolchainMissing("no compiler")

    monkeypatch.setattr(module, "toolchain", missing)
    assert {one.key.workload for one in not_reached(without_gpu.worker, book)} == {"by triton"}


def test_other_architectures_tests_and_modules_are_none_of_its_business(without_gpu: Run) -> None:
    without_gpu.store.write(Update(static={("sm_80", COMPILER, key()): static_record()}))
    without_gpu.store.write(Update(static={("sm_90", COMPILER, key(test="test_scale")): static_record()}))
    assert not_reached(without_gpu.worker, stopped_book()) == []


TIMED = SimpleNamespace(beside=None)


class Timed:
    """A store that has times of two workloads, and no machine code."""

    def static_tests(self, *_: object) -> dict[str, dict[str, StaticRecord]]:
        return {}

    def devices(self) -> tuple[str, ...]:
        return ("nvidia-a100", "nvidia-h200")

    def time_tests(self, target: str, module: str) -> dict[str, dict[str, object]]:
        assert module == MODULE
        if target == "nvidia-a100":
            return {TEST: {"copy": TIMED, "of_a100": TIMED}}
        assert target == "nvidia-h200"
        return {TEST: {"copy": TIMED, "scale": TIMED}, "test_other": {"other": TIMED}}


def test_what_the_revision_launches_and_this_test_does_not_is_not_measured(without_gpu: Run) -> None:
    there = UntimedWork(identity=Identity(code="c0" * 32, launch=""), cache="cold")
    without_gpu.worker.revision = Revision(
        commit="c0", name="c0", archs=("sm_90",), untimed={str(key(name)): there for name in ("copy", "scale", "sum")}
    )
    book = TestRecord(MODULE, TEST)
    book.add(workload("copy", static={"sm_90": static_record()}, toolchain=COMPILER))
    book.add(workload("scale", launched=False))
    found = not_reached(without_gpu.worker, book, stopped=False)
    assert [(one.key, one.target, one.kind) for one in found] == [
        (key(name), "sm_90", "static") for name in ("scale", "sum")
    ]
    without_gpu.worker.has_gpu = True
    assert all(one.kind == "time" for one in not_reached(without_gpu.worker, book, stopped=False))


def test_times_on_record_of_what_was_not_launched_are_not_measured(run: Run) -> None:
    run.worker.store = Timed()
    book = stopped_book("checked only")
    book.add(workload("copy", time_judgement("copy")))
    (found,) = not_reached(run.worker, book)
    assert (found.key, found.target, found.kind) == (key("scale"), "nvidia-h200", "time")
    book.add(workload("copy", launched=False))
    assert [one.key.workload for one in not_reached(run.worker, book)] == ["copy", "scale"]
    book.add(workload("copy"))
    assert [one.reason for one in not_reached(run.worker, book) if one.key == key()] == [
        f"has a baseline, and {CAUGHT}"
    ]
    book.add(workload("new"))
    assert [one.reason for one in not_reached(run.worker, book) if one.key == key("new")] == [
        f"has no baseline of its time, and {CAUGHT}"
    ]
    for other in (workload("new", launched=False), workload("new", time_judgement("new"))):
        book.add(other)
        assert key("new") not in [one.key for one in not_reached(run.worker, book)]
    run.worker.has_gpu = False
    assert not_reached(run.worker, book) == []


def test_a_workload_that_other_gpus_alone_are_timed_with_is_not_this_ones(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.worker.store = Timed()
    recorded = {TEST: {"of_a100": static_record("a1"), "gone": static_record("90")}}
    monkeypatch.setattr(Timed, "static_tests", lambda self, arch, module, compiler: recorded)
    book = TestRecord(MODULE, TEST)
    for name in ("copy", "scale"):
        book.add(workload(name, time_judgement(name)))
    assert [one.key.workload for one in not_reached(run.worker, book, stopped=False)] == ["gone"]


# --- workloads that a test did come to -----------------------------------------------------------


def test_a_workload_without_machine_code_of_this_architecture_says_so(run: Run, without_gpu: Run) -> None:
    for process in (run, without_gpu):
        record(process, static_record())
        book = stopped_book()
        book.add(workload("copy", time_judgement("copy")))
        (found,) = not_reached(process.worker, book)
        assert (found.reason, found.kind, found.needs_gpu) == (WITHOUT_CODE, "static", False)


@pytest.mark.parametrize(
    ("has_gpu", "compiler", "reached"),
    [
        (True, COMPILER, True),
        (False, COMPILER, False),
        (False, "Triton 3.6.0", True),
        (True, "Triton 3.6.0", True),
        (False, "triton 3.9.0, ptxas 13.4.59", True),
        (False, "nvcc 13.0.88", False),
        (False, "ptxas 13.0.88", False),
        (False, "nvjitlink 13.0.88", False),
        (False, "cutile 1.7.0", False),
        (False, "cutlass-dsl 4.8.1", False),
        (True, "nvcc 13.0.88", True),
        (True, "ptxas 13.0.88", True),
    ],
)
def test_code_for_another_architecture_may_have_been_chosen_by_the_gpu_or_the_library(
    run: Run, has_gpu: bool, compiler: str, reached: bool
) -> None:
    run.worker.has_gpu = has_gpu
    record(run, static_record("c9"), compiler=compiler)
    book = TestRecord(MODULE, TEST)
    book.add(workload("copy", time_judgement("copy"), static={"sm_80": static_record()}, toolchain=compiler))
    assert (not_reached(run.worker, book, stopped=False) == []) == reached


def test_what_a_test_that_ended_without_a_stop_did_not_come_to_is_not_for_want_of_a_gpu(without_gpu: Run) -> None:
    record(without_gpu, static_record())
    book = stopped_book()
    (stopped,) = not_reached(without_gpu.worker, book)
    (passed,) = not_reached(without_gpu.worker, book, stopped=False)
    assert (stopped.needs_gpu, passed.needs_gpu) == (True, False)
    assert passed.reason.endswith(PASSED_WITHOUT)
