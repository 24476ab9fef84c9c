"""What a revision's tests ran stands for baselines, and how a run speaks of it."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import pytest
from baseline_samples import CUBIN, keys_of, make_session, make_time
from record_samples import static_of
from run_samples import COMPILER, H200, MODULE, TEST, judgement, key, workload

from pytest_gpuperf.baselines.baseline_errors import CubinError
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.result import TestEvidence
from pytest_gpuperf.model.task import REVISION_FILE, Revision, read_revision
from pytest_gpuperf.model.verdict import Verdict
from pytest_gpuperf.revision.against import reworded
from pytest_gpuperf.revision.evidence import RevisionBaselines, update_of
from pytest_gpuperf.timing.process_reference import TestEnded

SHA = make_time(make_session()).cubin
REVISION = Revision(commit="c0", name="c0 (yesterday)", archs=("sm_90",))


def ended(test: str = TEST, *, packed: bool = True, failed: bool = False) -> TestEnded:
    session = make_session()
    static = {"sm_90": msgspec.structs.replace(static_of(), cubin=SHA)}
    work = workload("copy", static=static, toolchain=COMPILER, time=make_time(session, rounds=(51234.2,)))
    evidence = TestEvidence(
        module=MODULE, test=test, workloads=(msgspec.structs.replace(work, key=key(test=test)),), session=session,
        cubins={SHA: zlib.compress(CUBIN)} if packed else {}, device=H200,
    )  # fmt: skip
    return TestEnded(why="it fails" if failed else "", failed=failed, evidence=evidence)


def test_what_a_revision_ran_stands_for_baselines_as_it_comes(tmp_path: Path) -> None:
    store = RevisionBaselines(tmp_path, lambda node_id: None)
    assert (store.targets(), store.static("sm_90", key(), COMPILER)) == ((), None)
    cases = {
        TEST: (ended(), SHA, True),
        "test_failed": (ended("test_failed", failed=True), SHA, False),  # what it ran may be wrong
        "test_unpacked": (ended("test_unpacked", packed=False), "", True),  # nobody brought the machine code along
    }
    for name, (found, cubin, is_timed) in cases.items():
        store.add(name, update_of(found))
        record, time = store.static("sm_90", key(test=name), COMPILER), store.time(H200.slug, key(test=name))
        assert record is not None
        assert (record.kernel, record.cubin) == ("scale", cubin)
        assert (time is not None) is is_timed
        assert time is None or time.cubin == cubin
    assert (store.cubin(SHA), store.targets()) == (CUBIN, ("sm_90", H200.slug))


def test_other_processes_read_records_and_the_machine_code_of_one_test(tmp_path: Path) -> None:
    store = RevisionBaselines(tmp_path, lambda node_id: None)
    store.add("a", update_of(ended()))
    store.save("b")
    left = BaselineStore(tmp_path).static("sm_90", key(), COMPILER)
    assert left is not None
    assert left.cubin == ""
    with pytest.raises(CubinError):
        BaselineStore(tmp_path).cubin(SHA)
    store.add("b", update_of(ended("test_b")))
    store.save("b")
    assert BaselineStore(tmp_path).cubin(SHA) == CUBIN
    assert len(keys_of(BaselineStore(tmp_path), "sm_90")) == 2
    assert read_revision(tmp_path) is None
    (tmp_path / REVISION_FILE).write_bytes(msgspec.json.encode(REVISION, enc_hook=str))
    assert read_revision(tmp_path) == REVISION


@pytest.mark.parametrize(("lacking", "verdict", "foreign", "becomes", "reason"), [
    ("", Verdict.NEW, "", Verdict.NEW, "it is not in c0 (yesterday)"),
    ("", Verdict.SAME, "", Verdict.SAME, "as it was"),
    ("it fails", Verdict.NEW, "", Verdict.NOT_COMPARABLE,
     "c0 (yesterday) has nothing to compare with: it fails"),
    ("", Verdict.SAME, "a.so was loaded", Verdict.NOT_COMPARABLE,
     "this run used a file of the other side: a.so was loaded"),
])  # fmt: skip
def test_words_of_a_revision(lacking: str, verdict: Verdict, foreign: str, becomes: Verdict, reason: str) -> None:
    revision = msgspec.structs.replace(REVISION, lacking={f"{MODULE}::{TEST}": lacking} if lacking else {})
    found = reworded(revision, judgement(verdict, reason="as it was"), foreign)
    assert (found.verdict, found.reason) == (becomes, reason)
