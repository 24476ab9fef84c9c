"""One book judged: in the words of a revision, and against records that a change brought along."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, key, static_record, workload

from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.compile.cubin.occupancy import occupancy
from pytest_gpuperf.context.book import TestBook
from pytest_gpuperf.model.evidence import StaticRecord
from pytest_gpuperf.model.revision import Revision
from pytest_gpuperf.model.task import RevisionTask
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.session import judge_book as judge_book_module
from pytest_gpuperf.session import proven_records, static_gate
from pytest_gpuperf.session.judge_book import judge_book
from pytest_gpuperf.session.proven_records import why_not_proven


@pytest.fixture(autouse=True)
def this_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_gate, "toolchain", lambda: COMPILER)
    monkeypatch.setattr(judge_book_module.advise_test, "advise_test", lambda worker, book: None)


def test_every_workload_is_judged_in_the_words_of_the_revision(run: Run) -> None:
    run.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    book = TestBook(MODULE, TEST)
    for name in ("copy", "scale"):
        book.add(workload(name, judgement(Verdict.NEW, workload=name), judgement(Verdict.SLOWER, workload=name)))
    assert judge_book(run.config, run.worker, book, stopped=False, whole=True) == ""
    for work in book.workloads.values():
        assert [(one.verdict, one.reason) for one in work.judgements] == [
            (Verdict.NEW, "it is not in c0 (yesterday)"), (Verdict.SLOWER, "")
        ]  # fmt: skip


@pytest.mark.parametrize(("missing", "told"), [("fail", 0), ("warn", 1)])
def test_a_record_that_a_renamed_workload_continues_is_open_only_where_new_is_no_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str, told: int
) -> None:
    run.store.write(Update(static={("sm_90", COMPILER, key("old")): static_record()}))
    run.collected(TEST)
    book = TestBook(MODULE, TEST)
    timed = judgement(Verdict.NEW, kind="time", workload="new")
    new = workload("new", timed, static={"sm_90": static_record()}, toolchain=COMPILER)
    book.add(new)
    assert judge_book(run.config, run.with_options(missing=missing).worker, book, stopped=False, whole=True) == ""
    assert book.workloads["new"].was == key("old")
    assert [one.key for one in book.unreached] == [key("old")] * told


def test_the_process_of_a_revision_keeps_every_kernel_and_all_machine_code(run: Run) -> None:
    folder = run.config.rootpath
    run.with_options(enabled=False, task=RevisionTask(folder=folder, top=folder, others=(), tree=folder))
    run.worker.visited = set()
    for stopped in (True, False):
        book = TestBook(MODULE, TEST)
        for code in ("c0", "c1"):
            record = msgspec.structs.replace(static_record(code), source_hash=code * 32)
            book.add_compiled("copy", {"sm_90": record}, COMPILER, (f"-D={code}",), "a.cu")
        book.cubins = {"ab": b"machine code"}
        assert judge_book(run.config, run.worker, book, stopped=stopped, whole=True) == ""
        assert len(book.workloads) == 2
        assert book.unrecorded == {"ab"}
    assert run.worker.visited == {Path.cwd().resolve()}


# --- records that a change brought along -----------------------------------------------------------

LAUNCHED: dict[str, Any] = {"block": (128, 2, 1), "dynamic_shared_bytes": 1024}


def file_of(run: Run) -> Path:
    return run.store.root / "sm_90" / f"{MODULE.removesuffix('.py')}.json"


def proven(run: Run, monkeypatch: pytest.MonkeyPatch, new: StaticRecord | None = None, **changes: Any) -> str:
    """Why a record with these figures is not believed, whose cubin has the figures of the sample.

    ``new``: what is judged; by default what the sample is, launched as it is.
    """
    record = static_record(cubin="ab" * 32, **LAUNCHED)
    made = occupancy(record.profile, "sm_90", 256, 1024)
    old = msgspec.structs.replace(record, **{"occupancy": made, **changes})
    run.worker.trust = SimpleNamespace(believes=lambda path: path != file_of(run))
    monkeypatch.setattr(run.store, "cubin", {old.cubin: b"machine code"}.__getitem__)

    def read_stored(*given: Any) -> Any:
        assert given == (
            b"machine code",
            old.symbol or "copy",
            "sm_90",
            old.profile.code_hash,
            run.worker.compile_cache,
        )
        return SimpleNamespace(profile=record.profile)

    monkeypatch.setattr(proven_records, "read_stored", read_stored)
    return why_not_proven(run.worker, key(), "sm_90", old, new or msgspec.structs.replace(record, occupancy=made))


def test_a_record_is_believed_whose_occupancy_is_that_of_its_cubin_and_launch(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proven(run, monkeypatch) == ""
    assert proven(run, monkeypatch, block=None, occupancy=None) == ""
    assert proven(run, monkeypatch, occupancy=None) == ""
    assert proven(run, monkeypatch, block=None) == ""  # without a launch there is no occupancy to prove
    assert proven(run, monkeypatch, symbol="_Z4copyv") == ""
    large = occupancy(static_record().profile, "sm_90", 256, 100 << 10)
    assert proven(run, monkeypatch, dynamic_shared_bytes=100 << 10, occupancy=large) == ""


def test_a_record_is_not_believed_whose_figures_are_not_those_of_its_cubin(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = msgspec.structs.replace(static_record().profile, registers=16, instructions=4)
    said = proven(run, monkeypatch, profile=fewer, occupancy=None)
    assert "(registers 16 on record and 32 in the code, instructions 4 on record and 8 in the code)" in said


NO_LAUNCH: dict[str, Any] = {"block": None, "occupancy": None}
SMALL_BLOCKS: dict[str, Any] = {
    "block": (32, 1, 1), "dynamic_shared_bytes": 0, "occupancy": occupancy(static_record().profile, "sm_90", 32, 0),
}  # fmt: skip


@pytest.mark.parametrize("recorded", [NO_LAUNCH, SMALL_BLOCKS, {"occupancy": None}], ids=["none", "small", "unsaid"])
def test_a_launch_on_record_hides_no_lost_occupancy(
    run: Run, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, Any]
) -> None:
    """The record's occupancy is that of its own launch, and of no use beside another one."""
    as_now = static_record("c1", **LAUNCHED)
    half = msgspec.structs.replace(as_now, occupancy=occupancy(as_now.profile, "sm_90", 256, 50 << 10))
    said = proven(run, monkeypatch, half, **recorded)
    assert said.endswith(
        "launched as today its code has an occupancy of 100 %, and today's has 50 %: restore it from version control, "
        "or record the workload again with --update-baselines"
    )
    kept = msgspec.structs.replace(as_now, occupancy=occupancy(as_now.profile, "sm_90", 256, 1024))
    assert proven(run, monkeypatch, kept, **recorded) == ""
    assert proven(run, monkeypatch, msgspec.structs.replace(half, **NO_LAUNCH), **recorded) == ""
    assert proven(run, monkeypatch, half) == "", "the loss is beside the record's own, and judged there"


def test_a_record_is_not_believed_whose_occupancy_is_another(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    half = occupancy(static_record().profile, "sm_90", 256, 100 << 10)
    assert half is not None
    said = proven(run, monkeypatch, occupancy=half)
    assert said.startswith(
        f"{file_of(run)}: under CI a record that came with this change has to be proven, and the record has "
    )
    assert "occupancy" in said


def test_a_launch_that_cannot_be_proves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = proven(run, monkeypatch, block=(0, 1, 1))
    assert "has to be proven, and its machine code does not prove it: " in said
