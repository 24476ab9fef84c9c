"""Figures that past commits have on record, workload by workload."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from baseline_samples import H200, NVRTC, make_key, make_session, make_static, static_update, time_update
from git_samples import commit, git

from pytest_gpuperf.baselines.git_objects import GitFolder, ObjectReader
from pytest_gpuperf.baselines.past_records import PastCommit, PastRecord, commits_of, records_of
from pytest_gpuperf.baselines.snapshots import AtRevision, Place
from pytest_gpuperf.baselines.store import BaselineStore
from pytest_gpuperf.model.evidence import Key


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "repository" / "baselines")


def committed(store: BaselineStore, message: str) -> str:
    return commit(store.root.parent, message)


def recorded(store: BaselineStore, registers: int, key: Key | None = None, message: str = "record") -> str:
    store.write(static_update(make_static(registers), key))
    return committed(store, message)


def past(store: BaselineStore) -> list[PastRecord]:
    folder = GitFolder(store.root)
    with ObjectReader(store.root) as reader:
        return list(records_of(folder, reader, commits_of(store.root)))


def test_commits_that_touched_the_folder_the_oldest_first(store: BaselineStore) -> None:
    first = recorded(store, 32, message="Record: a, b\n\nwith a body")
    (store.root.parent / "other.py").touch()
    committed(store, "elsewhere")
    second = recorded(store, 40, message='Caf\u00e9 "quoted"')
    found = commits_of(store.root)
    assert [(one.name, one.subject) for one in found] == [(first, "Record: a, b"), (second, 'Caf\u00e9 "quoted"')]
    assert found[0].date == git(store.root, "show", "-s", "--format=%cI", first)


def test_what_a_branch_did_is_told_once_by_its_merge(store: BaselineStore) -> None:
    recorded(store, 32)
    git(store.root, "checkout", "-q", "-b", "side")
    recorded(store, 40)
    recorded(store, 48)
    git(store.root, "checkout", "-q", "main")
    git(store.root, "merge", "-q", "--no-ff", "-m", "merged", "side")
    assert [one.subject for one in commits_of(store.root)] == ["record", "merged"]


def test_each_commit_has_all_that_was_on_record_then(store: BaselineStore) -> None:
    other = make_key("test_other", module="a/test_other.py")
    first = recorded(store, 32)
    store.write(time_update(make_session()))
    second = recorded(store, 40, other)
    found = past(store)
    target = f"sm_90, {NVRTC}"
    assert [(one.commit.name, one.key, one.target) for one in found] == [
        (first, make_key(), target), (second, make_key(), H200), (second, other, target), (second, make_key(), target)
    ]  # fmt: skip
    assert all(isinstance(one.commit, PastCommit) for one in found)
    assert found[0].record == found[3].record == make_static(32)
    assert found[2].record == make_static(40)


def test_a_file_that_did_not_change_is_decoded_once(store: BaselineStore, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Place] = []
    real = AtRevision.file
    monkeypatch.setattr(AtRevision, "file", lambda self, place: (decoded.append(place), real(self, place))[1])
    recorded(store, 32)
    recorded(store, 40, make_key("test_b", module="b/test_b.py"))
    recorded(store, 48, make_key("test_b", module="b/test_b.py"))
    assert [msgspec.structs.asdict(one.record)["profile"].registers for one in past(store)] == [32, 40, 32, 48, 32]
    assert sorted(decoded) == [
        ("sm_90", "b/test_b.py"), ("sm_90", "b/test_b.py"), ("sm_90", "example_suite/test_transpose.py")
    ]  # fmt: skip


def test_a_damaged_file_is_passed_over(store: BaselineStore) -> None:
    recorded(store, 32)
    recorded(store, 32, make_key("test_b", module="b/test_b.py"))
    file = next(store.root.rglob("test_b.json"))
    file.write_text("{}")
    committed(store, "damage it")
    assert [(one.commit.subject, one.key.test) for one in past(store)] == [
        ("record", "test_transpose"), ("record", "test_b"), ("record", "test_transpose"),
        ("damage it", "test_transpose"),
    ]  # fmt: skip
