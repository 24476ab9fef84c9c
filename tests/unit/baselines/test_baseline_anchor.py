"""The anchor of a time record on disk: kept, checked, rounded, taken off, and never pruned while it is named."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from baseline_samples import CUBIN, H200, make_anchor, make_key, make_session, make_time, time_update

from pytest_gpuperf.baselines.baseline_errors import UnreadableBaselineError, UnwritableEvidenceError
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.prune import referenced_cubins, unused
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Anchor

OF_THE_ANCHOR = b"\x7fELF cubin of the anchor"
SHA256 = hashlib.sha256(OF_THE_ANCHOR).hexdigest()


def anchored(store: BaselineStore, anchor: Anchor | None) -> Path:
    """Writes a record with this anchor, and returns the file that it is in."""
    session = make_session()
    update = time_update(session, make_time(session, anchor=anchor))
    *_, file = store.write(with_both_cubins(update))
    return file


def with_both_cubins(update: Update) -> Update:
    return Update(time=update.time, sessions=update.sessions, cubins=[*update.cubins, OF_THE_ANCHOR])


def test_a_record_without_an_anchor_has_no_word_of_it_on_disk(tmp_path: Path) -> None:
    assert b"anchor" not in anchored(BaselineStore(tmp_path), None).read_bytes()


def test_an_anchor_is_read_as_it_was_written_but_for_its_digits(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    anchored(store, make_anchor(cubin=SHA256))
    record = store.time(H200, make_key())
    assert record is not None
    assert record.anchor == make_anchor(cubin=SHA256, time_ns=50987.12, ratio=1.00485)


def test_a_file_of_schema_2_is_read_and_not_rewritten_without_need(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    path = anchored(store, None)
    old = path.read_bytes().replace(b'"schema": 3', b'"schema": 2')
    path.write_bytes(old)
    store.forget()
    record = store.time(H200, make_key())
    assert record is not None
    assert record.anchor is None
    assert store.write(time_update(make_session())) == []
    assert path.read_bytes() == old


def test_the_anchor_s_cubin_is_no_waste_while_a_record_names_it(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    anchored(store, make_anchor(cubin=SHA256))
    assert referenced_cubins(store) == {SHA256, hashlib.sha256(CUBIN).hexdigest()}
    node = make_key().node_id
    assert unused(store, [node], modules_collected=[make_key().module]) == []
    store.write(Update(anchors=[(H200, make_key())]))
    assert [one.path.name for one in unused(store, [node], modules_collected=[])] == [f"{SHA256}.cubin.z"]


def test_an_anchor_whose_cubin_is_nowhere_is_not_written(tmp_path: Path) -> None:
    session = make_session()
    with pytest.raises(UnwritableEvidenceError, match="neither in this update nor in the store"):
        BaselineStore(tmp_path).write(time_update(session, make_time(session, anchor=make_anchor(cubin=SHA256))))


def test_a_record_becomes_its_own_anchor_and_stays_as_it_is_otherwise(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    anchored(store, make_anchor(cubin=SHA256))
    before = store.time(H200, make_key())
    store.write(Update(anchors=[(H200, make_key()), (H200, make_key(workload="gone"))]))
    after = store.time(H200, make_key())
    assert before is not None
    assert after == msgspec.structs.replace(before, anchor=None)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cubin", "../../etc", "not a SHA-256"),
        ("time_ns", 0.0, "its time is outside"),
        ("ratio", -1.0, "no ratio of times"),
        ("steps", 0, "steps is 0, below 1"),
    ],
)
def test_an_anchor_that_cannot_be_is_refused_in_both_directions(
    tmp_path: Path, name: str, value: object, words: str
) -> None:
    store = BaselineStore(tmp_path)
    with pytest.raises(UnwritableEvidenceError):
        anchored(store, make_anchor(**{name: value}))
    path = anchored(store, make_anchor())
    tree = json.loads(path.read_bytes())
    tree["tests"]["test_transpose"][""]["padded"]["anchor"][name] = value
    path.write_text(json.dumps(tree))
    store.forget()
    with pytest.raises(UnreadableBaselineError, match=words):
        store.time(H200, make_key())
