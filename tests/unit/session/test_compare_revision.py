"""What a revision's tests ran stands for baselines, and how a run speaks of it."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from baseline_samples import CUBIN, make_round, make_session, make_time
from git_samples import commit
from record_samples import static_of
from run_samples import COMPILER, H200, MODULE, TEST, judgement, key, workload

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import REVISION_FILE, Revision, read_revision
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.against import reworded, with_itself
from pytest_gpuperf.revision.evidence import RevisionBaselines, update_of
from pytest_gpuperf.timing.process_opponent import TestEnded

SHA = make_time(make_session()).cubin
REVISION = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))


def ended(test: str = TEST, *, packed: bool = True, failed: bool = False, **fields: Any) -> TestEnded:
    session = make_session()
    static = {"sm_90": msgspec.structs.replace(static_of(), cubin=SHA)}
    time = make_time(session, rounds=(make_round(session),))
    work = workload("copy", static=static, toolchain=COMPILER, time=time)
    evidence = TestEvidence(
        module=MODULE, test=test, workloads=(msgspec.structs.replace(work, key=key(test=test)),), session=session,
        cubins={SHA: zlib.compress(CUBIN)} if packed else {}, device=H200, **fields,
    )  # fmt: skip
    return TestEnded(why="it fails" if failed else "", failed=failed, evidence=evidence)


def test_machine_code_and_times_stand_for_baselines_as_they_come(tmp_path: Path) -> None:
    store = RevisionBaselines(tmp_path, lambda node_id: None)
    assert (store.targets(), store.static("sm_90", key(), COMPILER)) == ((), None)
    store.add("a", update_of(ended()))
    store.add("b", update_of(ended("test_b", failed=True)))
    for name in (TEST, "test_b"):
        record = store.static("sm_90", key(test=name), COMPILER)
        assert record is not None
        assert (record.kernel, record.cubin) == ("scale", SHA)
    time = store.time(H200.slug, key())
    assert time is not None
    assert (time.cubin, store.cubin(SHA), store.targets()) == (SHA, CUBIN, ("sm_90", H200.slug))
    assert store.time(H200.slug, key(test="test_b")) is None  # what it ran may be wrong


def test_machine_code_that_nobody_brought_along_is_not_named(tmp_path: Path) -> None:
    store = RevisionBaselines(tmp_path, lambda node_id: None)
    store.add("a", update_of(ended(packed=False)))
    record, time = store.static("sm_90", key(), COMPILER), store.time(H200.slug, key())
    assert record is not None
    assert time is not None
    assert (record.cubin, time.cubin) == ("", "")


def test_other_processes_read_records_and_the_machine_code_of_what_changed(tmp_path: Path) -> None:
    store = RevisionBaselines(tmp_path, lambda node_id: None)
    store.add("a", update_of(ended()))
    store.leave({"b"})
    left = BaselineStore(tmp_path).static("sm_90", key(), COMPILER)
    assert left is not None
    assert left.cubin == ""
    with pytest.raises(CubinError):
        BaselineStore(tmp_path).cubin(SHA)
    store.add("b", update_of(ended("test_b")))
    store.leave({"b"})
    assert BaselineStore(tmp_path).cubin(SHA) == CUBIN
    assert len(BaselineStore(tmp_path).keys("sm_90")) == 2


def test_a_folder_of_baselines_is_no_revision(tmp_path: Path) -> None:
    assert read_revision(tmp_path) is None
    (tmp_path / REVISION_FILE).write_bytes(msgspec.json.encode(REVISION, enc_hook=str))
    assert read_revision(tmp_path) == REVISION


@pytest.mark.parametrize(
    ("lacking", "verdict", "foreign", "becomes", "reason"),
    [
        ({}, Verdict.NEW, "", Verdict.NEW, "it is not in c0 (yesterday)"),
        ({}, Verdict.SAME, "", Verdict.SAME, "as it was"),
        ({f"{MODULE}::{TEST}": "it fails"}, Verdict.NEW, "", Verdict.NOT_COMPARABLE,
         "c0 (yesterday) has nothing to compare with: it fails"),
        ({}, Verdict.SAME, "a.so was loaded", Verdict.NOT_COMPARABLE,
         "this run used a file that is not its own: a.so was loaded"),
    ],
)  # fmt: skip
def test_a_judgement_in_the_words_of_a_revision(
    lacking: dict[str, str], verdict: Verdict, foreign: str, becomes: Verdict, reason: str
) -> None:
    revision = msgspec.structs.replace(REVISION, lacking=lacking)
    found = reworded(revision, judgement(verdict, reason="as it was"), foreign)
    assert (found.verdict, found.reason) == (becomes, reason)


def test_a_revision_that_is_checked_out_unchanged_is_compared_with_itself(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    revision = msgspec.structs.replace(REVISION, commit=commit(tmp_path))
    config: Any = type("Config", (), {"rootpath": tmp_path})
    assert with_itself(config, revision).startswith("c0 (yesterday) is what is checked out here, and no tracked file")
    (tmp_path / "a.py").write_text("2")
    assert with_itself(config, revision) == ""
    commit(tmp_path)
    assert with_itself(config, revision) == ""
