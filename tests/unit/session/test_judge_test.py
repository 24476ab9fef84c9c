"""One book judged: in the words of a revision, and against records that a change brought along."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from run_samples import COMPILER, MODULE, TEST, Run, judgement, static_record, workload

from pytest_gpuperf.model.task import Revision, RevisionTask
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.foreign_files import FOREIGN
from pytest_gpuperf.session import judge_test
from pytest_gpuperf.test_record import TestRecord


@pytest.fixture(autouse=True)
def this_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_test, "explain_test", lambda run, test: None)


def test_every_workload_is_judged_in_the_words_of_the_revision(run: Run) -> None:
    run.worker.revision = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))
    foreign: Any = SimpleNamespace(lines=lambda: ())
    run.config.stash[FOREIGN] = foreign
    book = TestRecord(MODULE, TEST)
    for name in ("copy", "scale"):
        book.add(workload(name, judgement(Verdict.NEW, workload=name), judgement(Verdict.SLOWER, workload=name)))
    assert judge_test.judge_test(run.config, run.worker, book, stopped=False, whole=True) == ""
    for work in book.workloads.values():
        assert [(one.verdict, one.reason) for one in work.judgements] == [
            (Verdict.NEW, "it is not in c0 (yesterday)"), (Verdict.SLOWER, "")
        ]  # fmt: skip


def test_the_process_of_a_revision_keeps_every_kernel_and_all_machine_code(run: Run) -> None:
    folder = run.config.rootpath
    run.with_options(enabled=False, task=RevisionTask(folder=folder, others=(), tree=folder, reading=3, writing=4))
    for stopped in (True, False):
        book = TestRecord(MODULE, TEST)
        for code in ("c0", "c1"):
            record = msgspec.structs.replace(static_record(code), source_hash=code * 32)
            book.add_compiled("copy", {"sm_90": record}, COMPILER, (f"-D={code}",), "a.cu")
        book.cubins = {"ab": b"machine code"}
        assert judge_test.judge_test(run.config, run.worker, book, stopped=stopped, whole=True) == ""
        assert len(book.workloads) == 2
        assert book.unrecorded == {"ab"}


# --- records that a change brought along -----------------------------------------------------------
