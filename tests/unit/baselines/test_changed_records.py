"""The records of the files that differ between two states of the baselines."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_samples import CUBIN, H200, NVRTC, make_key, make_session, make_static, make_time
from git_samples import commit

from pytest_gpuperf.baselines import parsing, snapshots
from pytest_gpuperf.baselines.changed_records import Difference, difference
from pytest_gpuperf.baselines.git_objects import GitFolder
from pytest_gpuperf.baselines.merging import Update
from pytest_gpuperf.baselines.snapshots import AtRevision, OnDisk
from pytest_gpuperf.baselines.store import BaselineStore

FIRST, SECOND = make_key(module="suite/test_a.py"), make_key(module="suite/test_b.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two modules with static evidence and times, committed."""
    root = tmp_path / "baselines"
    session = make_session()
    static = {("sm_90", NVRTC, key): make_static() for key in (FIRST, SECOND)}
    time = {(H200, key): make_time(session) for key in (FIRST, SECOND)}
    BaselineStore(root).write(Update(static=static, time=time, sessions=[session], cubins=[CUBIN]))
    commit(tmp_path)
    return root


def against_disk(root: Path, revision: str = "HEAD") -> tuple[Difference, list[str]]:
    """What differs, and what is said of files that cannot be read."""
    git = GitFolder(root)
    with git.open() as reader:
        before = AtRevision(revision, git, reader)
        after = OnDisk(root, git.hash_name)
        found = difference(before, after)
        return found, [*before.skipped.values(), *after.skipped.values()]


def test_equal_states_decode_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "decode", lambda *_: pytest.fail("decoded"))
    assert against_disk(root) == (Difference({}, {}, frozenset(), (None, None)), [])


def test_only_files_that_differ_are_decoded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BaselineStore(root).write(Update(static={("sm_90", NVRTC, FIRST): make_static(registers=48)}))
    decoded = []

    def decode(content: bytes, path: Path, target: str) -> object:
        decoded.append(path.name)
        return parsing.decode(content, path, target)

    monkeypatch.setattr(snapshots, "decode", decode)
    found, skipped = against_disk(root)
    assert decoded == ["test_a.json", "test_a.json"]
    assert found.before[FIRST].static["sm_90", NVRTC].profile.registers == 32
    assert found.after[FIRST].static["sm_90", NVRTC].profile.registers == 48
    assert (set(found.after), skipped) == ({FIRST}, [])


def test_a_workload_that_equal_files_have_is_known(root: Path) -> None:
    BaselineStore(root).write(Update(static={("sm_120", NVRTC, FIRST): make_static()}))
    found, _ = against_disk(root)
    assert (found.before, set(found.after), found.elsewhere) == ({}, {FIRST}, {FIRST})
    old, new = found.manifests
    assert [one.architectures for one in (old, new) if one] == [("sm_90",), ("sm_90", "sm_120")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b'{"schema": 99}', "knows up to version"),
        (b'{"schema": 1}', "its schema version is 1"),
        (b"<<<<<<< HEAD\n{", "line 1 is an unresolved merge conflict"),
        (b" " * (parsing.MAX_JSON_BYTES + 1), "it is larger than 16 MB"),
    ],
    ids=["empty", "newer", "older", "conflict", "too large"],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_compared(
    root: Path, content: bytes, words: str, committed: bool
) -> None:
    path = root / "sm_90" / "suite" / "test_a.json"
    good = path.read_bytes()
    path.write_bytes(content)
    if committed:
        commit(root.parent)
        path.write_bytes(good)
    BaselineStore(root).write(Update(static={("sm_90", NVRTC, SECOND): make_static(registers=48)}))
    found, (said,) = against_disk(root)
    assert words in said
    assert ("HEAD:baselines/sm_90/suite/test_a.json" if committed else str(path)) in said
    assert set(found.after) == set(found.before) == {SECOND}


def test_a_link_in_the_place_of_a_file_is_refused_on_both_sides(root: Path, tmp_path: Path) -> None:
    path = root / "sm_90" / "suite" / "test_a.json"
    outside = tmp_path / "outside.json"
    path.rename(outside)
    path.symlink_to(outside)
    _, (said,) = against_disk(root)
    assert "outside the baseline folder" in said
    commit(root.parent)
    path.unlink()
    outside.rename(path)
    found, (said,) = against_disk(root)
    assert said == "HEAD:baselines/sm_90/suite/test_a.json cannot be read: it is a link"
    assert found.after == {}


def test_a_manifest_that_cannot_be_read_is_named(root: Path) -> None:
    (root / "manifest.json").write_text("{")
    found, (said,) = against_disk(root)
    assert f"{root / 'manifest.json'} cannot be read" in said
    assert found.manifests == (None, None)


def test_a_file_in_a_place_that_no_module_has_is_named(root: Path) -> None:
    (root / "sm_90" / "con.json").write_text("{}")
    commit(root.parent)
    (root / "sm_90" / "con.json").unlink()
    _, (said,) = against_disk(root)
    assert "'con.py' cannot name a baseline file: 'con.py' is reserved on Windows" in said
